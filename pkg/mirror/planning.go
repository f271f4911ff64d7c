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
	// planDelay batches changes into one plan.
	planDelay = 50 * time.Millisecond
	// planRetry is the delay before a failed plan is retried.
	planRetry = 5 * time.Second
)

// planUntil computes and applies a plan now and after every signal on replan, until ctx ends.
func (m *mirror) planUntil(ctx context.Context, group *wait.Group) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := m.plan(ctx, group); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to apply plan", "retryAfter", planRetry)
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

// plan computes the plan of the current objects and applies it.
func (m *mirror) plan(ctx context.Context, group *wait.Group) error {
	in, err := m.inputs()
	if err != nil {
		return err
	}
	in.keys = m.encryption.keysFor(ctx, in.destinations)
	unchecked := m.permissions.checkNew(ctx, in)
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
	return unchecked
}

// enforce applies a plan and returns the watches that it needs. The routes are set before the workers are started: an event after the
// list of a comparison must be routed by the plan that requested the comparison.
func (m *mirror) enforce(ctx context.Context, next *plan, group *wait.Group) []watch.Watch {
	m.adopt(next)
	watches := m.route(next)
	m.assignWorkers(ctx, next, group)
	return watches
}

// inputs reads the inputs of a plan from the informers.
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

// adopt sets the plans of the destinations, adds new destinations and removes those that do not exist any more.
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
			if status, ok := m.earlier[d.uid]; ok {
				d.record.resume(status)
			}
			if queue, ok := m.recovered[d.uid]; ok {
				d.queue = queue
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

// dropRows removes the outbox rows of destinations that do not exist any more. Their files stay in Git.
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

// replace sets the plan of a destination and requests what follows from the difference to the previous one.
func (d *destination) replace(p *destinationPlan) {
	before := d.plan.Swap(p)
	if before != nil && (before.branch != p.branch || before.object.Spec.BaseFolder != p.object.Spec.BaseFolder) {
		d.tree.Store(nil) // The worker reads the new branch or folder and compares everything with it.
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
		d.plainSecrets.Store(false) // The comparison that the new plan requests encrypts them.
	case before != nil && before.object.Spec.Secrets == v1alpha1.SecretsAsIs:
		d.plainSecrets.Store(true)
	}
}

// requestComparisons requests the comparisons that a plan makes necessary.
func (d *destination) requestComparisons(p *destinationPlan) {
	fingerprints := map[schema.GroupVersionResource]string{}
	// Marshalling a spec does not fail.
	ignored, _ := json.Marshal(p.object.Spec.Ignore)
	for _, t := range p.types() {
		fingerprints[t.Resource] = fmt.Sprintf("%s\n%s\n%s\n%s\n%s",
			p.object.Spec.Secrets, p.sealing(t.Resource), p.object.Spec.Prune, ignored, p.selection.fingerprint(t.Resource))
	}
	d.seeds.want(fingerprints)
	d.seeds.request(p.object.Status.PendingSyncs)
}

// assignWorkers gives every branch with destinations one worker, and stops the workers of other branches.
func (m *mirror) assignWorkers(ctx context.Context, next *plan, group *wait.Group) {
	m.mu.Lock()
	members := map[branchKey][]*destination{}
	for key, p := range next.destinations {
		if p.problem.IsZero() {
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
	// Two workers must not serve a destination at the same time: if a destination moves to another branch, its worker is stopped, and
	// restarted for the remaining destinations. mu must not be held meanwhile, because a worker may need it until it has stopped.
	for _, running := range leaving {
		running.stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, destinations := range members {
		for _, d := range destinations {
			d.requestComparisons(d.plan.Load())
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

// loses reports whether a plan moves a destination of the worker to another branch.
func (w *worker) loses(next *plan) bool {
	return slices.ContainsFunc(w.all(), func(d *destination) bool {
		p, ok := next.destinations[d.key]
		return ok && p.object.UID == d.uid && p.problem.IsZero() && p.branch != w.key
	})
}

// startWorker starts the worker of a branch. The caller holds mu.
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

// route sets the router's destinations of each type, and returns the watches that they need.
func (m *mirror) route(next *plan) []watch.Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	routes := map[schema.GroupVersionResource][]*destination{}
	var watches []watch.Watch
	for key, p := range next.destinations {
		if !p.problem.IsZero() {
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
