// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// containsDepth is how many commits of the remote are searched for a push. It is missed only if other writers pushed more
// commits since.
const containsDepth = 256

// open loads the branch, or refreshes it if the remote may have moved, and requests the comparisons that this makes
// necessary.
func (w *worker) open(ctx context.Context, members []member) error {
	requested, full := requestedReads(members)
	if len(requested) > 0 {
		w.pollAt = time.Time{}
	}
	var err error
	switch {
	case w.branch == nil || full || !w.hasRead(members):
		err = w.load(ctx, members)
	case w.stale, !time.Now().Before(w.pollAt):
		err = w.refresh(ctx, members)
	}
	if err != nil {
		return err
	}
	w.stale = true // Until all of the following is done.
	w.publishTree(members)
	if err := w.recoverPushes(ctx); err != nil {
		return err
	}
	if err := w.inspect(ctx, members); err != nil {
		return err
	}
	w.stale = false
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

// refresh updates the branch from the remote. When the remote is due to be polled it also reads the credentials and the
// signing key: if the credentials have changed, the branch is loaded with the new ones, because the old ones may have been
// revoked.
func (w *worker) refresh(ctx context.Context, members []member) error {
	poll := !time.Now().Before(w.pollAt)
	if poll {
		remote, err := w.services.remote(ctx, w.key)
		if err != nil {
			return err
		}
		if w.sign, err = w.services.signer(ctx, members[0].plan.repository); err != nil {
			return err
		}
		if !reflect.DeepEqual(remote.Credentials, w.remote.Credentials) {
			return w.load(ctx, members)
		}
	}
	if err := w.branch.Refresh(ctx); err != nil {
		return err
	}
	if poll {
		w.pollAt = time.Now().Add(w.services.pollInterval)
	}
	return nil
}

// hasRead reports whether the branch was loaded with the folders of all members.
func (w *worker) hasRead(members []member) bool {
	return !slices.ContainsFunc(members, func(m member) bool {
		return !slices.Contains(w.folders, m.plan.object.Spec.BaseFolder)
	})
}

func (w *worker) load(ctx context.Context, members []member) error {
	remote, err := w.services.remote(ctx, w.key)
	if err != nil {
		return err
	}
	w.closeRemote()
	w.remote, w.branch = remote, nil
	w.wording = newWording(w.services.identity, members[0].plan.repository)
	if w.sign, err = w.services.signer(ctx, members[0].plan.repository); err != nil {
		return err
	}
	folders := make([]string, len(members))
	for i, m := range members {
		folders[i] = m.plan.object.Spec.BaseFolder
	}
	// Check comes first, because some servers create a repository for the first user who is allowed to write it.
	if err := remote.Check(ctx); err != nil {
		return err
	}
	w.pollAt = time.Now().Add(w.services.pollInterval)
	w.folders = folders
	w.branch, err = gitrepo.Load(ctx, remote, w.key.branch, gitrepo.Options{ManagedFolders: folders})
	return err
}

// inspect requests a comparison of every folder that is not in the state in which the worker left it: it is new, or other
// writers have changed it, which the comparison reverts.
func (w *worker) inspect(ctx context.Context, members []member) error {
	for _, m := range members {
		if before, ok := w.places[m.destination]; ok && before == w.placeOf(m) {
			continue
		}
		m.destination.seeds.invalidateAll()
		files := map[schema.GroupVersionResource]int64{}
		if err := w.walk(ctx, m.plan, "", func(file managedFile) { files[file.object.GroupVersionResource()]++ }); err != nil {
			return err
		}
		if err := w.markers.findNested(ctx, w.branch.Snapshot(), m); err != nil {
			return err
		}
		m.destination.record.counted(files)
	}
	w.recordFolders(members)
	return nil
}

// recordFolders records the state of the members' folders.
func (w *worker) recordFolders(members []member) {
	all := w.all()
	maps.DeleteFunc(w.places, func(d *destination, _ place) bool { return !slices.Contains(all, d) })
	w.refusals.retain(all)
	w.markers.retain(all)
	for _, m := range members {
		w.places[m.destination] = w.placeOf(m)
	}
}

func (w *worker) placeOf(m member) place {
	folder := m.plan.object.Spec.BaseFolder
	hash, _ := w.branch.Snapshot().FolderHash(folder)
	return place{folder: folder, hash: hash}
}

// publishTree publishes the branch to the router.
func (w *worker) publishTree(members []member) {
	tree := w.branch.Snapshot()
	for _, m := range members {
		m.destination.tree.Store(tree)
	}
}

// recoverPushes finds out which pushes in doubt the remote has accepted. The rows of an accepted push are removed: pushing
// them again would write history twice. A push whose base is still the branch's tip has not been accepted, but it may be
// while the next one is prepared, because the server may still process it.
func (w *worker) recoverPushes(ctx context.Context) error {
	restored, err := w.pushes.restore(ctx)
	if err != nil {
		return err
	}
	for _, note := range restored {
		w.supersede(note.Compared)
	}
	tip := w.branch.Tip()
	for _, note := range w.pushes.doubts {
		if note.Base == tip {
			continue
		}
		if err := w.recoverPush(ctx, note); err != nil {
			return err
		}
	}
	w.pushes.settle(tip)
	return nil
}

// recoverPush records a push and removes its rows if the remote has accepted it.
func (w *worker) recoverPush(ctx context.Context, note pushNote) error {
	landed, err := w.branch.Contains(ctx, note.Tip, containsDepth)
	if err != nil || !landed {
		return err
	}
	if err := w.pushes.accepted(ctx, note); err != nil {
		return err
	}
	w.supersede(note.Compares)
	for _, d := range w.all() {
		if err := w.removeThrough(ctx, d, note.Through[d.uid]); err != nil {
			return err
		}
	}
	return nil
}

// supersede takes over the comparisons of an earlier process: its remaining rows of older changes would revert files to an
// older state.
func (w *worker) supersede(scopes []comparedScope) {
	for _, d := range w.all() {
		for _, scope := range scopes {
			if scope.UID == d.uid {
				d.seeds.listedAt(scope.Watch, scope.ResourceVersion)
			}
		}
	}
	w.pushes.compared = append(w.pushes.compared, scopes...)
}

// removeThrough removes a destination's rows up to and including a sequence.
func (w *worker) removeThrough(ctx context.Context, d *destination, sequence uint64) error {
	for sequence > 0 {
		rows, err := w.services.outbox.Next(ctx, d.uid, outbox.MaxBatch, 1<<30)
		if err != nil {
			return err
		}
		done := slices.DeleteFunc(rows, func(row outbox.Row) bool { return row.Sequence > sequence })
		if len(done) == 0 {
			return nil
		}
		if err := w.forget(ctx, d, done); err != nil {
			return err
		}
	}
	return nil
}

// forget removes rows that need no push.
func (w *worker) forget(ctx context.Context, d *destination, rows []outbox.Row) error {
	if err := w.services.outbox.Remove(ctx, rows); err != nil {
		return err
	}
	for _, seen := range d.queue.Removed(rows) {
		pushSeconds.Observe(time.Since(seen).Seconds())
	}
	return nil
}
