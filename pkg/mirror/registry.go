// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// registry holds the existing destinations and runs one worker for each of their branches.
type registry struct {
	services *branchServices
	router   *router
	// replan requests a new plan, publish an update of statuses.
	replan, publish chan struct{}
	// adopted is closed when the first plan has been applied to the destinations.
	adopted chan struct{}

	mu           sync.Mutex
	destinations map[types.NamespacedName]*destination
	workers      map[branchKey]*runningWorker
	// recovered has the outbox rows of the previous process by the UID of their destination, until the first plan.
	recovered map[types.UID]*outbox.Queue
	// abandoned has the UIDs of deleted destinations whose rows must be removed.
	abandoned map[types.UID]struct{}
	// dropped is set if branches may have notes of pushes although no destination in force has the branch.
	dropped bool
	// earlier has the records that the previous process wrote by the UID of their destination, until the first plan.
	earlier map[types.UID]v1alpha1.GitDestinationRecord
}

// runningWorker is a worker that has been started.
type runningWorker struct {
	worker *worker
	// stop stops the worker and waits for its end.
	stop func()
}

// newRegistry returns a registry without destinations. The caller sets services.
func newRegistry(router *router, replan, publish chan struct{}) *registry {
	return &registry{
		router: router, replan: replan, publish: publish, adopted: make(chan struct{}),
		destinations: map[types.NamespacedName]*destination{}, workers: map[branchKey]*runningWorker{},
		recovered: map[types.UID]*outbox.Queue{}, abandoned: map[types.UID]struct{}{}, dropped: true,
	}
}

// recover adds an outbox row of the previous process. It is called before the first plan.
func (r *registry) recover(row outbox.Row) {
	q, ok := r.recovered[row.Change.UID]
	if !ok {
		q = outbox.NewQueue()
		r.recovered[row.Change.UID] = q
	}
	q.Enqueued(row.Change.Path, pendingOf(row.Change, row.Sequence))
	q.Durable(row)
}

// setRecords sets the records of the previous process. It is called before the first plan.
func (r *registry) setRecords(records []v1alpha1.GitDestinationStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.earlier = map[types.UID]v1alpha1.GitDestinationRecord{}
	for i := range records {
		if owner := metav1.GetControllerOf(&records[i]); owner != nil {
			r.earlier[owner.UID] = records[i].Status
		}
	}
}

// get returns the destination with a name; nil if there is none.
func (r *registry) get(name types.NamespacedName) *destination {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.destinations[name]
}

// all returns the current destinations.
func (r *registry) all() []*destination {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.destinations))
}

// unserved returns the destinations that the worker of a branch may not serve, although pushes to the branch may have changes of them:
// those that are not in force, and those of the branch. One that is coming into force is given to the worker after its plan is set.
func (r *registry) unserved(key branchKey) []*destination {
	return slices.DeleteFunc(r.all(), func(d *destination) bool {
		p := d.plan.Load()
		return p.problem.IsZero() && p.branch != key
	})
}

// oldest returns when the oldest pending change of an active destination was seen, in seconds since 1970; 0 if there is none.
func (r *registry) oldest() float64 {
	var oldest time.Time
	for _, d := range r.all() {
		seen := d.oldestWaiting()
		if p := d.plan.Load(); p == nil || p.object.Spec.Suspend || seen.IsZero() {
			continue
		}
		if oldest.IsZero() || seen.Before(oldest) {
			oldest = seen
		}
	}
	if oldest.IsZero() {
		return 0
	}
	return float64(oldest.UnixMilli()) / 1000
}

// depth returns the number of pending changes of all destinations of a branch.
func (r *registry) depth(key branchKey) (rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running, ok := r.workers[key]; ok {
		for _, d := range running.worker.all() {
			rows += d.queue.Backlog().Rows
		}
	}
	return rows
}

// wake wakes the worker of a branch. The caller holds mu.
func (r *registry) wake(key branchKey) {
	if running, ok := r.workers[key]; ok {
		signal(running.worker.wake)
	}
}

// withWatch calls change with the destinations that need a watch, and wakes their workers. No plan is applied meanwhile.
func (r *registry) withWatch(watch watch.Watch, change func([]*destination)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var needing []*destination
	for _, d := range r.destinations {
		if slices.ContainsFunc(d.plan.Load().selection.watches(watch.Resource), watch.Covers) {
			needing = append(needing, d)
		}
	}
	change(needing)
	for _, d := range needing {
		r.wake(d.plan.Load().branch)
	}
}

// updateRow calls update with the destination of a row and wakes its worker. If the destination does not exist any more, its rows are
// removed instead.
func (r *registry) updateRow(row outbox.Row, update func(*destination)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.destinations[row.Change.Destination]
	if !ok || d.uid != row.Change.UID {
		r.abandoned[row.Change.UID] = struct{}{}
		signal(r.replan)
		return
	}
	update(d)
	r.wake(d.plan.Load().branch)
	signal(r.publish)
}

// namespaceChanged requests the comparisons of a namespace whose labels change what rules select.
func (r *registry) namespaceChanged(change watch.NamespaceChange) {
	name := ""
	if change.Before != nil {
		name = change.Before.Name
	}
	if change.After != nil {
		name = change.After.Name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.destinations {
		p := d.plan.Load()
		if p == nil {
			continue
		}
		for _, t := range p.types() {
			if t.Namespaced && p.selection.movedBy(t.Resource, change) {
				d.seeds.invalidateNamespace(t.Resource, name)
			}
		}
		r.wake(p.branch)
	}
	signal(r.replan) // Access policies may select namespaces by label.
}

// deposit adds a deposit to the queue of its destination, or rejects it.
func (r *registry) deposit(request *deposit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.destinations[request.destination]
	if !ok {
		request.result <- fmt.Errorf("there is no GitDestination %s", request.destination)
		return
	}
	if err := d.depositProblem(); err != nil || request.path == "" {
		request.result <- err
		return
	}
	d.deposits.add(request)
	r.wake(d.plan.Load().branch)
}

// rejection returns which branches of a repository the remote does not let the server push to; zero if there are none.
func (r *registry) rejection(repository types.NamespacedName) conditions.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rejections []string
	for key, running := range r.workers {
		if reason := running.worker.health.rejection.Load(); key.repository == repository && reason != nil {
			rejections = append(rejections, *reason)
		}
	}
	if len(rejections) == 0 {
		return conditions.Reason{}
	}
	slices.Sort(rejections)
	return conditions.Reason{Code: v1alpha1.ReasonPushRejected, Message: strings.Join(rejections, "; ")}
}

// failingBranches returns the repositories with a branch that waits for a retry.
func (r *registry) failingBranches() map[types.NamespacedName]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	failing := map[types.NamespacedName]bool{}
	for key, running := range r.workers {
		if running.worker.health.failing.Load() {
			failing[key.repository] = true
		}
	}
	return failing
}

// retryBranches ends the backoff of the branches of a repository.
func (r *registry) retryBranches(repository types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, running := range r.workers {
		if key.repository == repository {
			signal(running.worker.reset)
		}
	}
}
