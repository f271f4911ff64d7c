// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// A failing branch is retried after retryMin, doubling up to retryMax, with a tenth of jitter.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// remotePatience is how long a remote may take for one request before it counts as unreachable. Without it a remote
	// that accepts a connection and sends nothing would block the branch and a worker slot forever.
	remotePatience = 2 * time.Minute
	// largeOperations bounds how many operations on remotes that need much memory run at the same time: users choose the
	// remotes, and each operation may take as much as --git-max-memory-mib.
	largeOperations = 2
	// pollInterval is how often a remote is polled without a trigger.
	pollInterval = time.Minute
)

// worker serves one branch and is its only writer.
type worker struct {
	key      branchKey
	services *branchServices

	// destinations are the destinations on the branch. The controller replaces them.
	destinations atomic.Pointer[[]*destination]
	// wake signals that there may be work. reset ends the backoff, because the configuration of the branch has changed.
	wake, reset chan struct{}

	health health

	// The fields below are only accessed by run.
	lease    *branchLease
	slot     *branchSlot
	remote   *remoteBranch
	recovery *recovery
	folders  folderStates
	markers  *markers
	batching *batching
	stager   *stager
	pusher   *pusher
	rows     *rowPusher
	deposits *depositPusher
	refusals *refusals
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

func newWorker(key branchKey, services *branchServices) *worker {
	w := &worker{
		key: key, services: services, wake: make(chan struct{}, 1), reset: make(chan struct{}, 1),
		health: health{branch: key.branch, recheck: func() { services.recheck(key.repository) }},
		lease:  services.leases(key), remote: newRemoteBranch(key, services), folders: folderStates{}, markers: newMarkers(services),
		refusals: newRefusals(services.retry), race: newRace(),
	}
	w.batching = &batching{limits: services.limits, race: w.race}
	pushes := &pushes{key: key, log: services.pushes, index: services.landings}
	w.recovery = &recovery{pushes: pushes, outbox: services.outbox}
	w.stager = &stager{remote: w.remote, markers: w.markers, index: services.landings}
	w.pusher = &pusher{
		remote: w.remote, lease: w.lease, race: w.race, pushes: pushes, outbox: services.outbox, folders: w.folders, markers: w.markers,
		event: services.event, changed: services.changed,
	}
	w.rows = &rowPusher{
		outbox: services.outbox, limits: services.limits, race: w.race, batching: w.batching, refusals: w.refusals,
		stager: w.stager, pusher: w.pusher,
	}
	w.deposits = &depositPusher{remote: w.remote, stager: w.stager, pusher: w.pusher}
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
	defer w.lease.release(ctx)
	backoff := newBackoff(w.services.retry)
	var held leaseHeldError
	var rejected *rejectedError
	for ctx.Err() == nil {
		again, err := w.cycle(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			w.updateHealth()
			backoff = newBackoff(w.services.retry)
			if w.sleep(ctx, again, w.wake) {
				w.refusals.retryAll()
			}
		case errors.Is(err, gitrepo.ErrMoved):
			w.remote.stale = true
			next := time.Now().Add(w.race.lost())
			w.report(err, next)
			w.sleep(ctx, next, nil)
		case errors.As(err, &held):
			w.remote.stale = true
			w.report(err, held.until)
			w.sleep(ctx, held.until, nil)
		case errors.As(err, &rejected):
			w.remote.invalidate(err)
			w.refusals.record(ctx, rejected) // The others are served at once.
			w.services.changed()
			w.updateHealth()
		default:
			w.remote.invalidate(err)
			w.health.setPushed(err)
			delay := backoff.Step()
			logger.Error(err, "Failed to serve branch", "retryAfter", delay.Round(time.Millisecond))
			next := time.Now().Add(delay)
			w.report(err, next)
			w.health.setFailing(true)
			if w.sleep(ctx, next, nil) {
				backoff = newBackoff(w.services.retry)
				w.refusals.retryAll()
			}
		}
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

// cycle does all pending work of the branch. It returns the time of the next cycle; zero means that only a wake-up starts
// one.
func (w *worker) cycle(ctx context.Context) (time.Time, error) {
	members := w.members()
	if len(members) == 0 {
		w.writing = nil
		return time.Time{}, nil
	}
	var err error
	if w.slot, err = w.services.slots.acquire(ctx, w.key); err != nil {
		return time.Time{}, err
	}
	defer w.slot.release()
	if err := w.open(ctx, members); err != nil {
		return time.Time{}, err
	}
	if w.writing, err = w.claim(ctx, members); err != nil {
		return time.Time{}, err
	}
	members, next := w.refusals.able(w.writing)
	if len(members) == 0 {
		return earliest(w.remote.pollAt, next), nil
	}
	// Rows are pushed before a comparison, because its commits would replace theirs and lose their authors. Rows that arrive
	// meanwhile are pushed after it, so that they cannot starve the comparison.
	for more := true; more; {
		if err := w.rows.pushWaiting(ctx, members, w.slot); err != nil {
			return time.Time{}, err
		}
		if err := w.deposits.pushPending(ctx, members, w.slot); err != nil {
			return time.Time{}, err
		}
		if more, err = w.compareNext(ctx, members); err != nil {
			return time.Time{}, err
		}
		if err := w.slot.giveWay(ctx); err != nil {
			return time.Time{}, err
		}
	}
	w.settled(members)
	return earliest(w.due(members), next), nil
}

// open brings the branch up to date with the remote and requests the comparisons that this makes necessary.
func (w *worker) open(ctx context.Context, members []member) error {
	requested, full := requestedReads(members)
	if len(requested) > 0 {
		w.remote.pollAt = time.Time{}
	}
	if err := w.remote.read(ctx, members, full); err != nil {
		return err
	}
	w.remote.stale = true // Until all of the following is done.
	publishTree(w.remote.tree(), members)
	if err := w.recovery.run(ctx, w.remote.branch, w.all()); err != nil {
		return err
	}
	if err := w.inspect(ctx, members); err != nil {
		return err
	}
	w.remote.stale = false
	for _, m := range members {
		if len(requested[m.destination.seeds]) > 0 {
			w.refusals.retryNow(m.destination) // The user who requested the sync may have removed the cause.
		}
	}
	for seeds, runs := range requested {
		seeds.markRead(runs)
	}
	return nil
}

// requestedReads returns the sync requests for which the remote must be read, and whether one of them requests a full load of
// the branch.
func requestedReads(members []member) (requested map[*seeds][]*syncRun, full bool) {
	requested = map[*seeds][]*syncRun{}
	for _, m := range members {
		if runs := m.destination.seeds.unread(); len(runs) > 0 {
			requested[m.destination.seeds] = runs
			full = full || slices.ContainsFunc(runs, func(run *syncRun) bool { return run.full })
		}
	}
	return requested, full
}

// publishTree publishes the files of the branch to the router.
func publishTree(tree *gitrepo.Tree, members []member) {
	for _, m := range members {
		m.destination.tree.Store(tree)
	}
}

// inspect requests a comparison of every folder that is not in the state in which the worker left it: it is new, or other
// writers have changed it, which the comparison reverts.
func (w *worker) inspect(ctx context.Context, members []member) error {
	tree := w.remote.tree()
	for _, m := range members {
		if w.folders.unchanged(tree, m) {
			continue
		}
		m.destination.seeds.invalidateAll()
		files := map[schema.GroupVersionResource]int64{}
		if err := walkFiles(ctx, tree, m.plan, "", func(file managedFile) { files[file.object.GroupVersionResource()]++ }); err != nil {
			return err
		}
		if err := w.markers.findNested(ctx, tree, m); err != nil {
			return err
		}
		m.destination.record.counted(files)
	}
	w.retain(w.all())
	w.folders.record(tree, members)
	return nil
}

// retain drops the state of all destinations but those given.
func (w *worker) retain(destinations []*destination) {
	w.folders.retain(destinations)
	w.refusals.retain(destinations)
	w.markers.retain(destinations)
}

// claim reads new markers and returns the members that own their folder. It uses the branch as it was last read: if another
// writer pushes first, the remote rejects our push, and the next cycle reads the branch again.
func (w *worker) claim(ctx context.Context, members []member) ([]member, error) {
	if err := w.markers.read(ctx, w.remote.branch, members); err != nil {
		return nil, err
	}
	tree := w.remote.tree()
	var admitted []member
	for _, m := range members {
		o := w.markers.ownership(tree, m)
		if m.destination.record.owned(o) {
			countConflict(o)
			w.services.changed()
		}
		if o.refused == nil {
			admitted = append(admitted, m)
		} else {
			m.destination.failDeposits(o.refused)
		}
	}
	return admitted, nil
}

// earliest returns the earlier of two times. Zero times are ignored.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// all returns the destinations on the branch, including those that are not active.
func (w *worker) all() []*destination {
	if all := w.destinations.Load(); all != nil {
		return *all
	}
	return nil
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

// due returns the time of the next cycle; zero means that only a wake-up starts one.
func (w *worker) due(members []member) time.Time {
	if backlogOf(members).Rows > 0 && w.batching.until.IsZero() {
		return time.Now()
	}
	due := earliest(w.batching.until, w.remote.pollAt)
	for _, m := range members {
		at, sweep := m.destination.seeds.next()
		due = earliest(due, at)
		if sweep && !m.plan.held && time.Now().Before(m.destination.sweepableAt(m.plan)) {
			due = earliest(due, m.destination.sweepableAt(m.plan))
		}
	}
	return due
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
		if m.destination.record.succeeded() {
			w.services.changed()
		}
	}
}
