// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// apply puts a plan into force and returns the watches that it needs. The routes are set before the workers are started: an event after the
// list of a comparison must be routed by the plan that requested the comparison.
func (r *registry) apply(ctx context.Context, next *plan, group *wait.Group) []watch.Watch {
	r.adopt(next)
	watches := r.setRoutes(next)
	r.assignWorkers(ctx, next, group)
	return watches
}

// adopt sets the plans of the destinations, adds new destinations and removes those that do not exist any more.
func (r *registry) adopt(next *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, d := range r.destinations {
		if p, ok := next.destinations[key]; !ok || p.object.UID != d.uid {
			r.abandoned[d.uid], r.dropped = struct{}{}, true
			delete(r.destinations, key)
			d.deposits.settleAll(fmt.Errorf("GitDestination %s has been deleted", key))
		}
	}
	for key, p := range next.destinations {
		d, ok := r.destinations[key]
		if !ok {
			d = newDestination(p.object)
			if status, ok := r.earlier[d.uid]; ok {
				d.record.resume(status)
			}
			if queue, ok := r.recovered[d.uid]; ok {
				d.queue = queue
			}
			delete(r.recovered, d.uid)
			r.destinations[key] = d
		}
		d.claim.Store(&p.claim) // What a worker has found meanwhile is found again by its next cycle, which the plan starts.
		d.replace(p)
		if err := d.depositProblem(); err != nil {
			d.deposits.settleAll(err) // The worker does not serve the destination, or will find the same.
		}
	}
	for uid := range r.recovered {
		r.abandoned[uid] = struct{}{}
	}
	clear(r.recovered)
	clear(r.earlier)
	select {
	case <-r.adopted:
	default:
		close(r.adopted)
	}
}

// dropRows removes the outbox rows of destinations that do not exist any more, and the notes of pushes that are not needed any more. The
// files stay in Git.
func (r *registry) dropRows(ctx context.Context) error {
	r.mu.Lock()
	abandoned := slices.Collect(maps.Keys(r.abandoned))
	r.mu.Unlock()
	for _, uid := range abandoned {
		// A row that is written meanwhile has them removed again.
		r.setAbandoned(uid, false)
		if err := r.services.outbox.RemoveAll(ctx, uid); err != nil {
			r.setAbandoned(uid, true)
			return err
		}
	}
	return r.dropNotes(ctx)
}

// setAbandoned records whether rows of a destination that does not exist any more must be removed.
func (r *registry) setAbandoned(uid types.UID, abandoned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.abandoned, uid)
	if abandoned {
		r.abandoned[uid] = struct{}{}
	}
}

// dropNotes removes the notes of pushes to branches that no destination in force has any more. They are kept while a destination that they
// concern has pending changes: the remote may have accepted these, or a comparison that is newer. No worker may be started meanwhile.
func (r *registry) dropNotes(ctx context.Context) error {
	r.mu.Lock()
	if !r.dropped {
		r.mu.Unlock()
		return nil
	}
	needed, pending := map[string]bool{}, map[types.UID]bool{}
	for key := range r.workers {
		needed[r.services.pushes.key(key)] = true
	}
	for _, d := range r.destinations {
		pending[d.uid] = d.queue.Backlog().Rows > 0
	}
	r.dropped = false
	r.mu.Unlock()
	err := r.services.pushes.retain(ctx, func(key string, notes []pushNote) bool {
		return needed[key] || slices.ContainsFunc(notes, func(note pushNote) bool { return note.isNeededFor(pending) })
	})
	if err == nil {
		existing := map[types.UID]bool{}
		for _, d := range r.all() {
			existing[d.uid] = true
		}
		err = r.services.proposals.Retain(ctx, func(uid types.UID) bool { return existing[uid] })
	}
	if err != nil {
		r.mu.Lock()
		r.dropped = true
		r.mu.Unlock()
	}
	return err
}

// setRoutes sets the router's destinations of each type, and returns the watches that they need.
func (r *registry) setRoutes(next *plan) []watch.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	routes := map[schema.GroupVersionResource][]*destination{}
	var watches []watch.Watch
	for key, p := range next.destinations {
		if !p.problem.IsZero() {
			continue
		}
		for _, t := range p.types() {
			routes[t.Resource] = append(routes[t.Resource], r.destinations[key])
			watches = append(watches, p.selection.watches(t.Resource)...)
		}
	}
	r.router.authors.follow(routes)
	r.router.routes.Store(&routes)
	return watch.Effective(watches)
}

// assignWorkers gives every branch with destinations one worker, and stops the workers of other branches.
func (r *registry) assignWorkers(ctx context.Context, next *plan, group *wait.Group) {
	r.mu.Lock()
	members := map[branchKey][]*destination{}
	for key, p := range next.destinations {
		if p.problem.IsZero() {
			members[p.branch] = append(members[p.branch], r.destinations[key])
		}
	}
	var leaving []*runningWorker
	for key, running := range r.workers {
		if len(members[key]) == 0 || running.worker.loses(next) {
			running.worker.dropped.Store(!next.writes(key))
			leaving = append(leaving, running)
			delete(r.workers, key)
			r.dropped = true
		}
	}
	r.mu.Unlock()
	// Two workers must not serve a destination at the same time: if a destination moves to another branch, its worker is stopped, and
	// restarted for the remaining destinations. mu must not be held meanwhile, because a worker may need it until it has stopped.
	for _, running := range leaving {
		running.stop()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, destinations := range members {
		for _, d := range destinations {
			d.requestComparisons(d.plan.Load())
		}
		running, ok := r.workers[key]
		if !ok {
			running = r.startWorker(ctx, key, group)
		}
		slices.SortFunc(destinations, func(a, b *destination) int { return compareNames(a.key, b.key) })
		running.worker.destinations.Store(&destinations)
		signal(running.worker.wake)
	}
}

// startWorker starts the worker of a branch. The caller holds mu.
func (r *registry) startWorker(ctx context.Context, key branchKey, group *wait.Group) *runningWorker {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	running := &runningWorker{worker: newWorker(key, r.services), stop: func() { cancel(); <-done }}
	r.workers[key] = running
	group.Start(func() {
		defer close(done)
		running.worker.run(ctx)
	})
	return running
}
