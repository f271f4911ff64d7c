// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

const (
	// planDelay batches changes into one plan.
	planDelay = 50 * time.Millisecond
	// planRetry is the delay before a failed plan is retried.
	planRetry = 5 * time.Second
)

// planner computes the plan of the current objects and applies it.
type planner struct {
	shared      *controller.Shared
	informers   externalversions.SharedInformerFactory
	policy      watch.Policy
	encryption  *encryption
	permissions *permissions
	registry    *registry
	streams     *watch.Streams
	watches     *watchStates
	// replan requests a new plan, publish an update of statuses.
	replan, publish chan struct{}
	// inForce is the plan that has been applied.
	inForce atomic.Pointer[plan]
}

// planUntil computes and applies a plan now and after every signal on replan, until ctx ends.
func (p *planner) planUntil(ctx context.Context, group *wait.Group) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := p.plan(ctx, group); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to apply plan", "retryAfter", planRetry)
			again = time.After(planRetry)
		}
		select {
		case <-p.replan:
		case <-again:
		case <-ctx.Done():
		}
		select {
		case <-time.After(planDelay):
		case <-ctx.Done():
		}
	}
}

// plan computes the plan of the current objects and applies it.
func (p *planner) plan(ctx context.Context, group *wait.Group) error {
	in, err := p.inputs()
	if err != nil {
		return err
	}
	in.claims, in.now = p.registry.claims(), time.Now()
	in.keys = p.encryption.keysFor(ctx, in.destinations)
	unchecked := p.permissions.checkNew(ctx, in)
	in.allow = p.permissions.allow
	next := newPlan(in)
	watches := p.registry.apply(ctx, next, group)
	p.inForce.Store(next)
	signal(p.publish)
	if err := p.streams.Set(ctx, watches); err != nil {
		return fmt.Errorf("set the watches: %w", err)
	}
	p.watches.retain(watches)
	if err := errors.Join(p.registry.dropRows(ctx), p.registry.removeOverflows(ctx)); err != nil {
		return err
	}
	return unchecked
}

// inputs reads the inputs of a plan from the informers.
func (p *planner) inputs() (inputs, error) {
	snapshot := p.shared.Types.Snapshot()
	in := inputs{types: snapshot, policy: p.policy, namespaces: p.shared.Namespaces.Get, uncertain: snapshot.GroupFailed}
	api := p.informers.Configbutler().V1alpha1()
	var err error
	if in.repositories, err = api.GitRepoConfigs().Lister().List(labels.Everything()); err != nil {
		return in, fmt.Errorf("list the GitRepoConfigs: %w", err)
	}
	if in.destinations, err = api.GitDestinations().Lister().List(labels.Everything()); err != nil {
		return in, fmt.Errorf("list the GitDestinations: %w", err)
	}
	if in.rules, err = api.WatchRules().Lister().List(labels.Everything()); err != nil {
		return in, fmt.Errorf("list the WatchRules: %w", err)
	}
	if in.clusterRules, err = api.ClusterWatchRules().Lister().List(labels.Everything()); err != nil {
		return in, fmt.Errorf("list the ClusterWatchRules: %w", err)
	}
	return in, nil
}

// recheckUntil reviews all rules periodically until ctx ends, and requests a new plan if a result has changed.
func (p *planner) recheckUntil(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		in, err := p.inputs()
		if err == nil {
			var changed bool
			if changed, err = p.permissions.checkAll(ctx, in); changed {
				signal(p.replan)
			}
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to check permissions of rule authors", "retryAfter", access.DeniedTTL)
		}
	}, access.DeniedTTL)
}
