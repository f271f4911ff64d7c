// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// worker serves one branch and is its only writer.
type worker struct {
	key      branchKey
	services *branchServices

	// destinations are the destinations on the branch. The controller replaces them.
	destinations atomic.Pointer[[]*destination]
	// wake signals that there may be work. reset ends the backoff, because the configuration of the branch has changed.
	wake, reset chan struct{}
	// dropped is set before the worker is stopped if no destination has the branch any more.
	dropped atomic.Bool

	health health

	// The fields below are only accessed by run.
	lease    *branchLease
	slot     *branchSlot
	remote   *remoteBranch
	recovery *recovery
	folders  folderStates
	markers  *markers
	batching *batching
	rows     *rowPusher
	deposits *depositPusher
	comparer *comparer
	sweeper  *sweeper
	refusals *refusals
	proposer *proposer
	// writing are the members that owned their folder in the last cycle.
	writing []member
	race    *race
}

// member is a destination with the plan that one cycle serves it by. The controller may replace a destination's plan at any
// time; a cycle uses the one it started with.
type member struct {
	destination *destination
	plan        *destinationPlan
}

// hasFile is that of the destination with the plan.
func (m member) hasFile(object outbox.Object, path string) bool {
	return m.destination.hasFile(m.plan, object, path)
}

func newWorker(key branchKey, services *branchServices) *worker {
	race := newRace()
	w := &worker{
		key: key, services: services, wake: make(chan struct{}, 1), reset: make(chan struct{}, 1),
		health: health{branch: key.branch, recheck: func() { services.recheck(key.repository) }},
		lease:  services.leases(key), remote: newRemoteBranch(key, services), folders: folderStates{}, markers: newMarkers(services),
		batching: &batching{limits: services.limits, race: race}, refusals: newRefusals(services.retry), race: race,
	}
	pushes := &pushes{key: key, log: services.pushes, history: services.history, oldest: w.oldest}
	w.recovery = &recovery{pushes: pushes, outbox: services.outbox, destinations: w.concerned}
	stager := &stager{remote: w.remote, markers: w.markers, history: services.history, memory: services.memory}
	w.proposer = newProposer(key, services, w.remote, w.lease, func(ctx context.Context, call func() error) error {
		return w.slot.without(ctx, call)
	})
	pusher := &pusher{
		proposer: w.proposer, remote: w.remote, lease: w.lease, race: race, pushes: pushes, outbox: services.outbox, folders: w.folders, markers: w.markers,
		event: services.event, changed: services.changed,
	}
	w.rows = &rowPusher{
		outbox: services.outbox, limits: services.limits, race: race, batching: w.batching, refusals: w.refusals, stager: stager, pusher: pusher,
	}
	w.deposits = &depositPusher{remote: w.remote, stager: stager, pusher: pusher}
	seeds := &seedPusher{branch: key.branch, stager: stager, pusher: pusher, event: services.event}
	w.comparer = &comparer{
		lister: services.lister, namespaces: services.namespaces, running: services.running, starting: services.starting,
		author: services.author, marks: services.marks, memory: services.memory, remote: w.remote, race: race, pusher: seeds, changed: services.changed,
		event: services.event,
	}
	w.sweeper = &sweeper{remote: w.remote, pusher: seeds, changed: services.changed}
	return w
}

// signal sends to a channel of capacity one unless a signal is pending.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// run serves the branch until ctx ends. Errors are recorded with the destinations, and the work is retried.
func (w *worker) run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithValues("repository", w.key.repository.String(), "branch", w.key.branch)
	ctx = klog.NewContext(ctx, logger)
	defer w.remote.close()
	defer w.leave(ctx)
	backoff := newBackoff(w.services.retry)
	var held leaseHeldError
	var rejected *rejectedError
	for ctx.Err() == nil {
		next, err := w.cycle(ctx)
		var wake <-chan struct{}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			w.updateHealth()
			backoff = newBackoff(w.services.retry)
			wake = w.wake
		case errors.Is(err, gitrepo.ErrMoved):
			w.remote.stale = true
			next = time.Now().Add(w.race.lost())
			w.report(err, next)
		case errors.As(err, &held):
			w.remote.stale = true
			next = held.until
			w.report(err, next)
		case errors.As(err, &rejected):
			w.remote.invalidate(err)
			w.refusals.record(ctx, rejected)
			w.services.changed()
			w.updateHealth()
			continue // The others are served at once.
		default:
			w.remote.invalidate(err)
			w.health.setPushed(err)
			delay := retryDelay(&backoff, err)
			logger.Error(err, "Failed to serve branch", "retryAfter", delay.Round(time.Millisecond))
			next = time.Now().Add(delay)
			w.report(err, next)
			w.health.setFailing(true)
		}
		// A reset ends every backoff, also that of destinations that are held while the branch waits for something else.
		if w.sleep(ctx, next, wake) {
			backoff = newBackoff(w.services.retry)
			w.refusals.retryAll()
			w.proposer.checkNow()
		}
	}
}

// leave ends the use of the branch's Lease.
func (w *worker) leave(ctx context.Context) {
	if w.dropped.Load() {
		w.lease.remove(ctx)
	} else {
		w.lease.release(ctx)
	}
}

// updateHealth records whether the branch is served: it is not while the remote rejects the files of every destination.
func (w *worker) updateHealth() {
	rejected := w.refusals.ofAll(w.writing)
	w.health.setPushed(rejected)
	w.health.setFailing(rejected != nil)
}

func newBackoff(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// retryDelay returns the delay before the next attempt after an error.
func retryDelay(backoff *wait.Backoff, err error) time.Duration {
	delay := backoff.Step()
	var git *gitrepo.Error
	if errors.As(err, &git) && git.IsOutage() {
		return min(delay, outageRetryMax)
	}
	return delay
}

// sleep waits until a time (unless zero), for a reset, or for wake if it is not nil. It reports whether a reset ended it.
func (w *worker) sleep(ctx context.Context, until time.Time, wake <-chan struct{}) (reset bool) {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case <-timer:
	case <-wake:
	case <-w.reset:
		return true
	case <-ctx.Done():
	}
	return false
}

// all returns the destinations on the branch, including those that are not active.
func (w *worker) all() []*destination {
	if all := w.destinations.Load(); all != nil {
		return *all
	}
	return nil
}

// concerned returns the destinations that pushes to the branch may have changes of, some of them twice.
func (w *worker) concerned() []*destination {
	return slices.Concat(w.all(), w.services.unserved(w.key))
}

// oldest returns when the oldest pending change was seen of a destination that pushes to the branch may have changes of; zero if there is
// none.
func (w *worker) oldest(uid types.UID) time.Time {
	for _, d := range w.concerned() {
		if d.uid == uid {
			return d.queue.Backlog().Oldest
		}
	}
	return time.Time{}
}

// loses reports whether a plan moves a destination of the worker to another branch.
func (w *worker) loses(next *plan) bool {
	return slices.ContainsFunc(w.all(), func(d *destination) bool {
		p, ok := next.destinations[d.key]
		return ok && p.object.UID == d.uid && p.problem.IsZero() && p.branch != w.key
	})
}

// members returns the active destinations.
func (w *worker) members() []member {
	var members []member
	for _, d := range w.all() {
		if p := d.plan.Load(); p.active() && p.branch == w.key {
			members = append(members, member{destination: d, plan: p})
		}
	}
	return members
}

// report records an error with all members.
func (w *worker) report(err error, next time.Time) {
	countRetry(err)
	for _, m := range w.members() {
		m.destination.record.failed(err, next)
		m.destination.failDeposits(err)
	}
	w.services.changed()
}

// settled records the success of a cycle with the members.
func (w *worker) settled(members []member) {
	for _, m := range members {
		w.refusals.accepted(m.destination)
		ended := m.destination.endOverflow()
		if m.destination.record.succeeded() || ended {
			w.services.changed()
		}
	}
}
