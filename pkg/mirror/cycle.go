// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

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
	for _, m := range members {
		m.destination.acceptChanges()
	}
	// Rows are pushed before a comparison, because its commits would replace theirs and lose their authors. Rows that arrive
	// meanwhile are pushed after it, so that they cannot starve the comparison.
	for more := true; more; {
		if members = stillActive(members); len(members) == 0 {
			return earliest(w.remote.pollAt, next), nil
		}
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
	if members = stillActive(members); len(members) == 0 {
		return earliest(w.remote.pollAt, next), nil
	}
	proposeAt, err := w.proposer.publish(ctx, members)
	if err != nil {
		return time.Time{}, err
	}
	w.settled(members)
	return earliest(earliest(w.due(members), next), proposeAt), nil
}

// stillActive returns the members that were not suspended since the cycle began: waiting for a slot and reading the remote can take minutes.
func stillActive(members []member) []member {
	return slices.DeleteFunc(slices.Clone(members), func(m member) bool { return !m.destination.plan.Load().active() })
}

// open brings the branch up to date with the remote and requests the comparisons that this makes necessary.
func (w *worker) open(ctx context.Context, members []member) error {
	if err := w.proposer.restore(ctx, members); err != nil {
		return err
	}
	requested, full := requestedReads(members)
	if len(requested) > 0 {
		w.remote.pollAt = time.Time{}
	}
	if err := w.remote.read(ctx, members, full); err != nil {
		return err
	}
	w.remote.stale = true // Until all of the following is done.
	publishTree(w.remote.tree(), members)
	if err := w.recovery.run(ctx, w.remote.branch); err != nil {
		return err
	}
	if len(requested) > 0 {
		w.proposer.checkNow()
	}
	if err := w.settle(ctx, members); err != nil {
		return err
	}
	for _, m := range members { // After it, because it may find that a pull request was declined.
		if len(requested[m.destination.seeds]) > 0 {
			w.proposer.syncRequested(m)
		}
	}
	publishTree(w.remote.tree(), members)
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

// settle brings the branch of a pull request to its base. That may push, so it is not done to a folder of another owner.
func (w *worker) settle(ctx context.Context, members []member) error {
	if !w.proposer.proposes() {
		return nil
	}
	if err := w.inspect(ctx, members); err != nil {
		return err
	}
	if owned, err := w.claim(ctx, members); err != nil || len(owned) == 0 {
		return err
	}
	return w.proposer.settle(ctx, members)
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

// claim reads new markers and returns the members that own their folder, also in the base of the branch. It uses the branch as it was
// last read: if another writer pushes first, the remote rejects our push, and the next cycle reads the branch again.
func (w *worker) claim(ctx context.Context, members []member) ([]member, error) {
	if err := w.markers.read(ctx, w.remote.branch, members); err != nil {
		return nil, err
	}
	trees := treesOf(w.remote.branch)
	var admitted []member
	for _, m := range members {
		o := w.markers.ownership(trees[0], m)
		for _, tree := range trees[1:] {
			if in := w.markers.ownership(tree, m); o.refused == nil && in.refused != nil {
				o = in
			}
		}
		w.services.claimed(m, o)
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

// compareNext runs the due comparisons of one destination, or, if none is due, sweeps. It reports whether there may be more.
func (w *worker) compareNext(ctx context.Context, members []member) (more bool, err error) {
	otherWork := func() bool { return w.hasOtherWork(members) }
	for _, m := range members {
		if more, err := w.comparer.compare(ctx, members, m, otherWork); more || err != nil {
			return more, err
		}
	}
	for _, m := range members {
		if err := w.sweeper.sweep(ctx, members, m); err != nil {
			m.destination.seeds.sweepAgain()
			return false, err
		}
	}
	return false, nil
}

// hasOtherWork reports whether other work comes before the next comparison: rows, whose authors a comparison would lose, or other
// branches.
func (w *worker) hasOtherWork(members []member) bool {
	return backlogOf(members).Rows > 0 && !w.batching.holds(members) || w.slot.contended()
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

// earliest returns the earlier of two times. Zero times are ignored.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
