// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
)

const (
	// publishInterval is the minimum time between two updates of statuses.
	publishInterval = time.Second
	// A failed update is retried after publishRetryMin, doubling up to publishRetryMax.
	publishRetryMin = 2 * time.Second
	publishRetryMax = time.Minute
)

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// publisher writes the GitDestinationStatuses, and the statuses of destinations and rules.
type publisher struct {
	shared    *controller.Shared
	informers externalversions.SharedInformerFactory
	announcer *events.Announcer
	authors   *authors
	watches   *watchStates
	registry  *registry
	// publish requests an update of statuses.
	publish chan struct{}
	// inForce returns the plan that has been applied; nil before the first.
	inForce func() *plan
	// blocked is the error that prevents writes to the outbox; nil, or a pointer to nil, if there is none.
	blocked atomic.Pointer[error]
	// written has the records as they were last written, by the UID of their destination.
	written map[types.UID]v1alpha1.GitDestinationRecord
}

// run updates the statuses after every signal on publish, until ctx ends.
func (p *publisher) run(ctx context.Context) {
	backoff := wait.Backoff{Duration: publishRetryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: publishRetryMax}
	retry := backoff
	defer queueDepth.Set(0)
	for {
		var again <-chan time.Time
		if err := p.update(ctx); err != nil && ctx.Err() == nil {
			delay := retry.Step()
			klog.FromContext(ctx).Error(err, "Failed to update statuses", "retryAfter", delay.Round(time.Millisecond))
			again = time.After(delay)
		} else {
			retry = backoff
		}
		select {
		case <-time.After(publishInterval):
		case <-ctx.Done():
			return
		}
		select {
		case <-p.publish:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// update writes the statuses that have changed. An error of one does not prevent the others from being written.
func (p *publisher) update(ctx context.Context) error {
	var errs []error
	destinations, pending := p.registry.all(), 0
	for _, d := range destinations {
		pending += d.queue.Backlog().Rows
		if err := p.writeRecordAndStatus(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("GitDestination %s: %w", d.key, err))
		}
	}
	queueDepth.Set(float64(pending))
	maps.DeleteFunc(p.written, func(uid types.UID, _ v1alpha1.GitDestinationRecord) bool {
		return !slices.ContainsFunc(destinations, func(d *destination) bool { return d.uid == uid })
	})
	if now := p.inForce(); now != nil {
		errs = append(errs, p.writeRuleStatuses(ctx, now)...)
	}
	return errors.Join(errs...)
}

// writeRecordAndStatus writes the record and the status of one destination. The record is written first, because the status drops the sync
// requests that are completed according to the record.
func (p *publisher) writeRecordAndStatus(ctx context.Context, d *destination) error {
	plan, failure := d.plan.Load(), p.failure(d)
	watching := func(t schema.GroupVersionResource) (bool, string) { return p.watches.of(plan, t) }
	record := newRecord(d, failure, p.registry.depth(plan.branch), watching)
	if written, ok := p.written[d.uid]; !ok || !equality.Semantic.DeepEqual(record.Status, written) {
		_, err := p.shared.Records.Write(ctx, record)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
			return nil // Its namespace is being deleted.
		}
		if err != nil {
			return fmt.Errorf("write the GitDestinationStatus: %w", err)
		}
		p.written[d.uid] = record.Status
	}
	return p.writeDestinationStatus(ctx, d, failure, &record.Status)
}

// failure returns the error that blocks a destination; nil if there is none.
func (p *publisher) failure(d *destination) error {
	if blocked := p.blocked.Load(); blocked != nil && *blocked != nil {
		return *blocked
	}
	return d.record.current().failure
}

// writeDestinationStatus writes the conditions, and drops the sync requests that are completed according to the written record.
func (p *publisher) writeDestinationStatus(ctx context.Context, d *destination, failure error, recorded *v1alpha1.GitDestinationRecord) error {
	object, err := p.informers.Configbutler().V1alpha1().GitDestinations().Lister().GitDestinations(d.key.Namespace).Get(d.key.Name)
	if err != nil || object.UID != d.uid {
		return nil //nolint:nilerr // It has been deleted.
	}
	reports, missing := p.authors.reports(time.Now()), gaps(d.plan.Load(), recorded.Watches)
	client := p.shared.Client.ConfigbutlerV1alpha1().GitDestinations(d.key.Namespace)
	return writeStatus(ctx, p.announcer, client, object, conditionsOfDestination, func(object *v1alpha1.GitDestination) bool {
		before := object.Status
		object.Status.ObservedGeneration = d.plan.Load().object.Generation
		object.Status.Conditions = destinationConditions(d, failure, missing, reports, object.Status.Conditions)
		object.Status.Claim = d.claim.Load().DeepCopy()
		object.Status.PendingSyncs = withoutDone(object.Status.PendingSyncs, recorded.Syncs)
		return !equality.Semantic.DeepEqual(before, object.Status)
	})
}

// writeRuleStatuses writes the statuses of all rules of a plan.
func (p *publisher) writeRuleStatuses(ctx context.Context, now *plan) (errs []error) {
	api, lists := p.shared.Client.ConfigbutlerV1alpha1(), p.informers.Configbutler().V1alpha1()
	for key, rp := range now.rules {
		rule, err := lists.WatchRules().Lister().WatchRules(key.Namespace).Get(key.Name)
		if err != nil || rule.UID != rp.uid {
			continue // It has been deleted.
		}
		problem, destination := p.ruleProblem(rp)
		client := api.WatchRules(key.Namespace)
		err = writeStatus(ctx, p.announcer, client, rule, conditionsOfWatchRule, func(object *v1alpha1.WatchRule) bool {
			return updateRuleStatus(rp, problem, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of WatchRule %s", key), err))
	}
	for name, rp := range now.clusterRules {
		rule, err := lists.ClusterWatchRules().Lister().Get(name)
		if err != nil || rule.UID != rp.uid {
			continue // It has been deleted.
		}
		problem, destination := p.ruleProblem(rp)
		client := api.ClusterWatchRules()
		err = writeStatus(ctx, p.announcer, client, rule, conditionsOfClusterWatchRule, func(object *v1alpha1.ClusterWatchRule) bool {
			return updateRuleStatus(rp, problem, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of ClusterWatchRule %s", name), err))
	}
	return errs
}

// ruleProblem returns why something that a rule selects and its destination mirrors is not watched or compared and, for a rule in force,
// why changes are not written to the folder of its destination.
func (p *publisher) ruleProblem(r *rulePlan) (problem, destination conditions.Reason) {
	d := p.registry.get(r.destination)
	if problem := r.selectionProblem(); !problem.IsZero() || d == nil {
		return problem, conditions.Reason{}
	}
	plan := d.plan.Load()
	return p.watchProblem(r, d, plan), d.writeProblem(plan, p.failure(d))
}

// watchProblem returns why something that a rule selects and its destination mirrors is not watched or compared.
func (p *publisher) watchProblem(r *rulePlan, d *destination, plan *destinationPlan) conditions.Reason {
	for _, t := range r.types {
		if !plan.takes(t.Resource) {
			continue
		}
		ok, failure := p.watches.of(plan, t.Resource)
		switch {
		case failure != "":
			return conditions.Reason{Code: v1alpha1.ReasonWatchFailed, Message: failure}
		case !ok:
			return conditions.Progressing(fmt.Sprintf("%s is being watched for the first time", t.Resource.GroupResource()))
		case !d.seeds.compared(t.Resource):
			return conditions.Progressing(fmt.Sprintf("%s is being compared with the folder", t.Resource.GroupResource()))
		}
	}
	return conditions.Reason{}
}

// statusObject is an object whose status is written.
type statusObject[T any] interface {
	events.Object
	DeepCopy() T
}

// statusClient writes the statuses of a kind.
type statusClient[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// writeStatus applies change to the newest version of an object. If change reports a difference, it writes the status and records Events
// of the changed conditions. It does nothing if the object has been deleted, or replaced by another with the same name.
func writeStatus[T statusObject[T]](
	ctx context.Context, a *events.Announcer, client statusClient[T], object T, conditionsOf func(T) []metav1.Condition, change func(T) bool,
) error {
	uid, latest := object.GetUID(), object.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := conditionsOf(latest.DeepCopy())
		if !change(latest) {
			return nil
		}
		_, err := client.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
		if err == nil {
			a.Announce(latest, before, conditionsOf(latest))
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if fresh.GetUID() != uid {
			return nil
		}
		latest = fresh
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
