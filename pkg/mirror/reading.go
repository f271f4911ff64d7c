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
)

// containsDepth is how far back on the remote a push is looked for. Other writers would
// have had to push more commits than that while this server was away.
const containsDepth = 256

// open reads the branch, or reads on if the remote may have moved, and finds out what that
// makes necessary.
func (w *worker) open(ctx context.Context, members []member) error {
	asked, anew := askedLooks(members)
	if len(asked) > 0 {
		w.lookAt = time.Time{}
	}
	var err error
	switch {
	case w.branch == nil || anew || !w.hasRead(members):
		err = w.load(ctx, members)
	case w.stale, !time.Now().Before(w.lookAt):
		err = w.refresh(ctx, members)
	}
	if err != nil {
		return err
	}
	w.stale = true // until all of this is done
	w.show(members)
	if err := w.recoverPushes(ctx); err != nil {
		return err
	}
	if err := w.inspect(ctx, members); err != nil {
		return err
	}
	w.stale = false
	for _, m := range members {
		if r := w.refusals[m.destination]; r != nil && len(asked[m.seeds]) > 0 {
			r.until = time.Time{} // The user who requested the sync may have removed the cause.
		}
	}
	for seeds, runs := range asked {
		seeds.seen(runs)
	}
	return nil
}

// askedLooks returns the requests for which the remote has to be looked at, and whether one
// of them wants the branch read anew.
func askedLooks(members []member) (asked map[*seeds][]*syncRun, anew bool) {
	asked = map[*seeds][]*syncRun{}
	for _, m := range members {
		if runs := m.seeds.unseen(); len(runs) > 0 {
			asked[m.seeds] = runs
			anew = anew || slices.ContainsFunc(runs, func(run *syncRun) bool { return run.full })
		}
	}
	return asked, anew
}

// refresh follows the remote. It also asks for the credentials and the signing key, unless
// another writer was merely faster: where the credentials are not those in use, which may
// have been taken back, the branch is read anew with those of now.
func (w *worker) refresh(ctx context.Context, members []member) error {
	look := !time.Now().Before(w.lookAt)
	if look {
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
	if look {
		w.lookAt = time.Now().Add(w.services.lookInterval)
	}
	return nil
}

// hasRead says whether the folders of all members are among those read.
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
	w.leave()
	w.remote, w.branch = remote, nil
	w.wording = newWording(w.services.identity, members[0].plan.repository)
	if w.sign, err = w.services.signer(ctx, members[0].plan.repository); err != nil {
		return err
	}
	folders := make([]string, len(members))
	for i, m := range members {
		folders[i] = m.plan.object.Spec.BaseFolder
	}
	// Check comes first, because some servers make a repository for the first who may write it.
	if err := remote.Check(ctx); err != nil {
		return err
	}
	w.lookAt = time.Now().Add(w.services.lookInterval)
	w.folders = folders
	w.branch, err = gitrepo.Load(ctx, remote, w.key.branch, gitrepo.Options{ManagedFolders: folders})
	return err
}

// inspect asks for a comparison of every folder that is not as the worker left it: it is
// new here, or other people have changed it, which is to be undone.
func (w *worker) inspect(ctx context.Context, members []member) error {
	for _, m := range members {
		if before, ok := w.places[m.destination]; ok && before == w.placeOf(m) {
			continue
		}
		m.seeds.invalidateAll()
		files := map[schema.GroupVersionResource]int64{}
		if err := w.walk(ctx, m.plan, "", func(file managedFile) { files[file.object.resource()]++ }); err != nil {
			return err
		}
		nested, err := w.nestedMarkers(ctx, m.plan)
		if err != nil {
			return err
		}
		m.record.counted(files)
		w.nested[m.destination] = nested
	}
	w.remember(members)
	return nil
}

// remember notes the members' folders as they are now.
func (w *worker) remember(members []member) {
	all := w.all()
	maps.DeleteFunc(w.places, func(d *destination, _ place) bool { return !slices.Contains(all, d) })
	w.forgetRefusals()
	maps.DeleteFunc(w.nested, func(d *destination, _ []string) bool { return !slices.Contains(all, d) })
	for _, m := range members {
		w.places[m.destination] = w.placeOf(m)
	}
}

func (w *worker) placeOf(m member) place {
	folder := m.plan.object.Spec.BaseFolder
	hash, _ := w.branch.Snapshot().FolderHash(folder)
	return place{folder: folder, hash: hash}
}

// show makes the branch as it is now visible to the router.
func (w *worker) show(members []member) {
	tree := w.branch.Snapshot()
	for _, m := range members {
		m.tree.Store(tree)
	}
}

// recoverPushes finds out which pushes landed whose answers nobody heard: the rows of one
// that did are done, and doing them again would write history twice. One whose base is
// still the branch's tip has not, but may while the next is being made: the process that
// made it is gone, the server that it was sent to is not.
func (w *worker) recoverPushes(ctx context.Context) error {
	if !w.doubtsRead {
		doubts, err := w.services.pushes.read(ctx, w.key)
		if err != nil {
			return err
		}
		w.doubts, w.doubtsRead = doubts, true
		for _, note := range doubts {
			w.supersede(note.Compared)
		}
	}
	tip := w.branch.Tip()
	for _, note := range w.doubts {
		if note.Base == tip {
			continue
		}
		if err := w.recoverPush(ctx, note); err != nil {
			return err
		}
	}
	w.doubts = slices.DeleteFunc(w.doubts, func(note pushNote) bool { return note.Base != tip })
	return nil
}

// recoverPush tells of a push if it landed, and removes its rows.
func (w *worker) recoverPush(ctx context.Context, note pushNote) error {
	landed, err := w.branch.Contains(ctx, note.Tip, containsDepth)
	if err != nil || !landed {
		return err
	}
	if err := w.landed(ctx, note); err != nil {
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

// supersede takes over what an earlier process has compared: the rows that it left of changes
// that came before would take files back to what they were.
func (w *worker) supersede(scopes []comparedScope) {
	for _, d := range w.all() {
		for _, scope := range scopes {
			if scope.UID == d.uid {
				d.seeds.listedAt(scope.Watch, scope.ResourceVersion)
			}
		}
	}
	w.compared = append(w.compared, scopes...)
}

// removeThrough removes a destination's rows up to and including a sequence.
func (w *worker) removeThrough(ctx context.Context, d *destination, sequence uint64) error {
	for sequence > 0 {
		rows, err := w.services.outbox.Next(ctx, d.uid, intakeBatch, 1<<30)
		if err != nil {
			return err
		}
		done := slices.DeleteFunc(rows, func(row Row) bool { return row.Sequence > sequence })
		if len(done) == 0 {
			return nil
		}
		if err := w.forget(ctx, d, done); err != nil {
			return err
		}
	}
	return nil
}

// forget removes rows that need no push any more.
func (w *worker) forget(ctx context.Context, d *destination, rows []Row) error {
	if err := w.services.outbox.Remove(ctx, rows); err != nil {
		return err
	}
	for _, seen := range d.queue.removed(rows) {
		pushSeconds.Observe(time.Since(seen).Seconds())
	}
	return nil
}
