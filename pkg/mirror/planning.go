// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/source"
)

const (
	// planDelay lets changes that come together make one plan.
	planDelay = 50 * time.Millisecond
	// planRetry is when a plan that could not be put into force is tried again.
	planRetry = 5 * time.Second
)

// planUntil makes a plan now and whenever something has changed, until ctx ends.
func (m *mirror) planUntil(ctx context.Context, group *wait.Group) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := m.plan(ctx, group); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Plan could not be put into force", "retryAfter", planRetry)
			again = time.After(planRetry)
		}
		select {
		case <-m.replan:
		case <-again:
		case <-ctx.Done():
		}
		select {
		case <-time.After(planDelay):
		case <-ctx.Done():
		}
	}
}

func (m *mirror) plan(ctx context.Context, group *wait.Group) error {
	in, err := m.inputs()
	if err != nil {
		return err
	}
	next := newPlan(in)
	if err := m.adopt(ctx, next); err != nil {
		return err
	}
	m.staff(ctx, next, group)
	watches := m.route(next)
	if err := m.streams.Set(ctx, watches); err != nil {
		return fmt.Errorf("set the watches: %w", err)
	}
	m.watches.retain(watches)
	signal(m.publish)
	return m.writeRuleStatuses(ctx, in, next)
}

// inputs reads what the plan is made of.
func (m *mirror) inputs() (inputs, error) {
	snapshot, policy := m.catalogue.Snapshot(), m.config.Policy
	in := inputs{
		namespaces: m.namespaces.Get, uncertain: snapshot.GroupFailed,
		resolve: func(s source.Selection) ([]source.Type, []source.Unmatched) { return snapshot.Resolve(s, policy) },
	}
	api := m.informers.Configbutler().V1alpha1()
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

// adopt gives every destination its new plan, meets new ones and forgets those that are
// gone, together with what waited for them.
func (m *mirror) adopt(ctx context.Context, next *plan) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, p := range next.destinations {
		d, ok := m.destinations[key]
		if !ok || d.uid != p.object.UID {
			if err := m.forgetDestination(ctx, key); err != nil {
				return err
			}
			d = m.meet(p.object)
		}
		d.replace(p)
	}
	for key := range m.destinations {
		if _, ok := next.destinations[key]; !ok {
			if err := m.forgetDestination(ctx, key); err != nil {
				return err
			}
		}
	}
	return m.dropRecovered(ctx)
}

// meet begins to serve a destination, with the rows that an earlier process left for it.
// The caller holds mu.
func (m *mirror) meet(object *v1alpha1.GitDestination) *destination {
	d := newDestination(object)
	m.destinations[d.key] = d
	rows := m.recovered[d.key]
	m.recovered[d.key] = slices.DeleteFunc(slices.Clone(rows), func(row Row) bool { return row.Change.UID == d.uid })
	for _, row := range rows {
		if row.Change.UID == d.uid {
			d.queue.enqueued(row.Sequence, row.Change.Path, blobOf(row.Change))
			d.queue.durable(row)
		}
	}
	return d
}

// forgetDestination ends a destination and removes what waits for it: nobody wants it any
// more. Its files stay in Git. The caller holds mu.
func (m *mirror) forgetDestination(ctx context.Context, key types.NamespacedName) error {
	d, ok := m.destinations[key]
	if !ok {
		return nil
	}
	for {
		rows, err := m.services.outbox.Next(ctx, key, intakeBatch, 1<<30)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(row Row) bool { return row.Change.UID != d.uid })
		if len(rows) == 0 {
			break
		}
		if err := m.services.outbox.Remove(ctx, rows); err != nil {
			return err
		}
	}
	delete(m.destinations, key)
	return nil
}

// dropRecovered removes the rows of an earlier process whose destinations are gone. The
// caller holds mu.
func (m *mirror) dropRecovered(ctx context.Context) error {
	for _, rows := range m.recovered {
		if len(rows) == 0 {
			continue
		}
		if err := m.services.outbox.Remove(ctx, rows); err != nil {
			return err
		}
	}
	clear(m.recovered)
	return nil
}

// replace gives a destination its new plan and finds out what that makes necessary.
func (d *destination) replace(p *destinationPlan) {
	before := d.plan.Swap(p)
	if before != nil && (before.branch != p.branch || before.object.Spec.BaseFolder != p.object.Spec.BaseFolder) {
		d.tree.Store(nil) // the worker reads the new place and compares everything with it
	}
	if p.referred {
		d.hadRules.Store(true)
	}
	if !p.verdict.ok() {
		return
	}
	fingerprints := map[schema.GroupVersionResource]string{}
	for _, t := range p.selection.types() {
		fingerprints[t.Resource] = fmt.Sprintf("%s\n%s\n%s", p.object.Spec.Secrets, p.object.Spec.Prune, p.selection.fingerprint(t.Resource))
	}
	d.seeds.want(fingerprints)
}

// staff lets every branch that destinations are on have its one worker.
func (m *mirror) staff(ctx context.Context, next *plan, group *wait.Group) {
	m.mu.Lock()
	members := map[branchKey][]*destination{}
	for key, p := range next.destinations {
		if p.verdict.ok() {
			members[p.branch] = append(members[p.branch], m.destinations[key])
		}
	}
	var leaving []*runningWorker
	for key, running := range m.workers {
		if len(members[key]) == 0 {
			leaving = append(leaving, running)
			delete(m.workers, key)
		}
	}
	m.mu.Unlock()
	// A worker that stops may still ask the mirror something, and one that takes its place
	// must not begin before.
	for _, running := range leaving {
		running.stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, destinations := range members {
		running, ok := m.workers[key]
		if !ok {
			running = m.startWorker(ctx, key, group)
		}
		slices.SortFunc(destinations, func(a, b *destination) int { return compareNames(a.key, b.key) })
		running.destinations.Store(&destinations)
		signal(running.wake)
	}
}

// startWorker begins to serve a branch. The caller holds mu.
func (m *mirror) startWorker(ctx context.Context, key branchKey, group *wait.Group) *runningWorker {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	running := &runningWorker{worker: newWorker(key, m.services), stop: func() { cancel(); <-done }}
	m.workers[key] = running
	group.Start(func() {
		defer close(done)
		running.run(ctx)
	})
	return running
}

// route tells the router who takes which types, and returns the watches needed for that.
func (m *mirror) route(next *plan) []source.Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	routes := map[schema.GroupVersionResource][]*destination{}
	var watches []source.Watch
	for key, p := range next.destinations {
		if !p.verdict.ok() {
			continue
		}
		for _, t := range p.selection.types() {
			routes[t.Resource] = append(routes[t.Resource], m.destinations[key])
			watches = append(watches, p.selection.watches(t.Resource)...)
		}
	}
	m.router.routes.Store(&routes)
	return source.Effective(watches)
}
