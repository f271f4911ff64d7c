// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
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
	in.keys = m.encryption.keysFor(ctx, in.destinations)
	unsettled := m.permissions.settle(ctx, in)
	in.allow = m.permissions.allow
	next := newPlan(in)
	watches := m.enforce(ctx, next, group)
	m.inForce.Store(next)
	signal(m.publish)
	if err := m.streams.Set(ctx, watches); err != nil {
		return fmt.Errorf("set the watches: %w", err)
	}
	m.watches.retain(watches)
	if err := m.dropRows(ctx); err != nil {
		return err
	}
	return unsettled
}

// enforce puts a plan into force and returns the watches that it needs. Changes are routed
// by the plan before a comparison that it asks for can begin: what happens after the list
// of that comparison must not be routed by what was in force before.
func (m *mirror) enforce(ctx context.Context, next *plan, group *wait.Group) []watch.Watch {
	m.adopt(next)
	watches := m.route(next)
	m.staff(ctx, next, group)
	return watches
}

// inputs reads what the plan is made of.
func (m *mirror) inputs() (inputs, error) {
	snapshot, policy := m.shared.Types.Snapshot(), m.config.Policy
	in := inputs{
		namespaces: m.shared.Namespaces.Get, uncertain: snapshot.GroupFailed,
		resolve: func(s watch.Selection) ([]watch.Type, []watch.Unmatched) { return snapshot.Resolve(s, policy) },
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
// gone.
func (m *mirror) adopt(next *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, d := range m.destinations {
		if p, ok := next.destinations[key]; !ok || p.object.UID != d.uid {
			m.abandoned[d.uid] = struct{}{}
			delete(m.destinations, key)
		}
	}
	for key, p := range next.destinations {
		d, ok := m.destinations[key]
		if !ok {
			d = newDestination(p.object)
			if told, ok := m.earlier[d.uid]; ok {
				d.record.resume(told)
			}
			if left, ok := m.recovered[d.uid]; ok {
				d.queue = left
			}
			delete(m.recovered, d.uid)
			m.destinations[key] = d
		}
		d.replace(p)
	}
	for uid := range m.recovered {
		m.abandoned[uid] = struct{}{}
	}
	clear(m.recovered)
	clear(m.earlier)
	select {
	case <-m.adopted:
	default:
		close(m.adopted)
	}
}

// dropRows removes what waits for destinations that are gone: nobody wants it any more.
// Their files stay in Git.
func (m *mirror) dropRows(ctx context.Context) error {
	m.mu.Lock()
	abandoned := slices.Collect(maps.Keys(m.abandoned))
	m.mu.Unlock()
	for _, uid := range abandoned {
		if err := m.services.outbox.RemoveAll(ctx, uid); err != nil {
			return err
		}
		m.mu.Lock()
		delete(m.abandoned, uid)
		m.mu.Unlock()
	}
	return nil
}

// replace gives a destination its new plan.
func (d *destination) replace(p *destinationPlan) {
	before := d.plan.Swap(p)
	if before != nil && (before.branch != p.branch || before.object.Spec.BaseFolder != p.object.Spec.BaseFolder) {
		d.tree.Store(nil) // the worker reads the new place and compares everything with it
		d.seeds.invalidateAll()
	}
	if before != nil && before.prunes() != p.prunes() {
		d.seeds.sweepAgain()
	}
	if p.referred {
		d.hadRules.Store(true)
	}
	switch {
	case p.secrets.sealer != nil:
		d.plainSecrets.Store(false) // the comparison that this asks for encrypts them
	case before != nil && before.object.Spec.Secrets == v1alpha1.SecretsAsIs:
		d.plainSecrets.Store(true)
	}
}

// demand asks for the comparisons that a plan makes necessary.
func (d *destination) demand(p *destinationPlan) {
	fingerprints := map[schema.GroupVersionResource]string{}
	// A spec has nothing that JSON cannot express.
	ignored, _ := json.Marshal(p.object.Spec.Ignore)
	for _, t := range p.types() {
		fingerprints[t.Resource] = fmt.Sprintf("%s\n%s\n%s\n%s\n%s",
			p.object.Spec.Secrets, p.sealing(t.Resource), p.object.Spec.Prune, ignored, p.selection.fingerprint(t.Resource))
	}
	d.seeds.want(fingerprints)
	d.seeds.request(p.object.Status.PendingSyncs)
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
		if len(members[key]) == 0 || running.loses(next) {
			leaving = append(leaving, running)
			delete(m.workers, key)
		}
	}
	m.mu.Unlock()
	// A destination must not be served by two workers at once: one that goes to another
	// worker ends the first, which begins anew with what is left to it. One that stops may
	// still ask the mirror something.
	for _, running := range leaving {
		running.stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, destinations := range members {
		for _, d := range destinations {
			d.demand(d.plan.Load())
		}
		running, ok := m.workers[key]
		if !ok {
			running = m.startWorker(ctx, key, group)
		}
		slices.SortFunc(destinations, func(a, b *destination) int { return compareNames(a.key, b.key) })
		running.destinations.Store(&destinations)
		signal(running.wake)
	}
}

// loses says whether a destination of the worker goes to another one.
func (w *worker) loses(next *plan) bool {
	return slices.ContainsFunc(w.all(), func(d *destination) bool {
		p, ok := next.destinations[d.key]
		return ok && p.object.UID == d.uid && p.verdict.ok() && p.branch != w.key
	})
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
func (m *mirror) route(next *plan) []watch.Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	routes := map[schema.GroupVersionResource][]*destination{}
	var watches []watch.Watch
	for key, p := range next.destinations {
		if !p.verdict.ok() {
			continue
		}
		for _, t := range p.types() {
			routes[t.Resource] = append(routes[t.Resource], m.destinations[key])
			watches = append(watches, p.selection.watches(t.Resource)...)
		}
	}
	m.router.authors.follow(routes)
	m.router.routes.Store(&routes)
	return watch.Effective(watches)
}
