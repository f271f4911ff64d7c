// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// pushes records the pushes of a branch, in the push log and in the history.
type pushes struct {
	key branchKey
	log *pushLog
	// history is nil if Changes are not recorded.
	history History
	// doubts are the pushes of which it is unknown whether the remote has accepted them, oldest first. Their rows are still in the outbox.
	doubts []pushNote
	// read is set once doubts include those of the previous process.
	read bool
	// compared are the comparisons that may be newer than rows.
	compared []*notedComparison
	// stored has the keys of the rows of comparisons that the log may have, by the ID of the comparison.
	stored map[string][]string
	// oldest returns when the oldest pending change of a destination was seen, zero if there is none.
	oldest func(types.UID) time.Time
}

// restore adds the doubts of the previous process, and returns them. Further calls do nothing.
func (p *pushes) restore(ctx context.Context) ([]pushNote, error) {
	if p.read {
		return nil, nil
	}
	doubts, stored, err := p.log.read(ctx, p.key)
	if err != nil {
		return nil, err
	}
	p.doubts, p.stored, p.read = doubts, stored, true
	return doubts, nil
}

// prepare writes the note of a push on top of base, and its Changes, before it is sent. The note lets the next process find out whether
// the remote has accepted the push, if this one dies meanwhile. Both are written concurrently, so that the store commits them together;
// the push is sent when both are durable.
func (p *pushes) prepare(ctx context.Context, base gitrepo.Hash, note *pushNote, changes []v1alpha1.ChangeSpec) error {
	p.compared = slices.DeleteFunc(p.compared, p.outlived)
	p.compared = p.compared[max(0, len(p.compared)-keptComparisons):]
	note.Base, note.Compared = base, slices.Clone(p.compared)
	note.Recorded = len(changes) > 0
	rows := p.newRows(note.Compares)
	evicted := max(0, len(p.doubts)-keptDoubts+1)
	notes := slices.Clone(p.doubts[evicted:])
	for i := range notes {
		notes[i].Compared = nil // The new note has those that are still needed.
	}
	notes = append(notes, *note)
	group, writing := errgroup.WithContext(ctx)
	group.Go(func() error { return p.log.write(writing, p.key, rows, notes) })
	if note.Recorded {
		group.Go(func() error { return p.history.Prepare(writing, note.Tip.String(), changes) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	dropped := p.doubts[:evicted]
	p.doubts = notes
	p.discard(ctx, dropped)
	p.removeComparisons(ctx)
	return nil
}

// newRows gives an ID to each comparison that has none, and returns their rows. A push that follows another writer has comparisons that
// are stored already.
func (p *pushes) newRows(comparisons []*notedComparison) (rows []storetable.Row) {
	for _, comparison := range comparisons {
		if comparison.ID != "" {
			continue
		}
		comparison.ID = string(uuid.NewUUID())
		for _, row := range p.log.rowsOf(p.key, comparison) {
			p.stored[comparison.ID] = append(p.stored[comparison.ID], row.Key)
			rows = append(rows, row)
		}
	}
	return rows
}

// removeComparisons removes the rows of the comparisons that no note in the log refers to. If that fails, the next push removes them.
func (p *pushes) removeComparisons(ctx context.Context) {
	unneeded := maps.Clone(p.stored)
	for _, note := range p.doubts {
		for _, comparison := range slices.Concat(note.Compares, note.Compared) {
			delete(unneeded, comparison.ID)
		}
	}
	if len(unneeded) == 0 {
		return
	}
	keys := slices.Concat(slices.Collect(maps.Values(unneeded))...)
	if err := p.log.remove(ctx, keys); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to remove the comparisons of earlier pushes; the next push removes them")
		}
		return
	}
	for id := range unneeded {
		delete(p.stored, id)
	}
}

// replace writes the note of a push as prepare does, instead of its earlier one, which the remote has rejected.
func (p *pushes) replace(ctx context.Context, earlier pushNote, base gitrepo.Hash, note *pushNote, changes []v1alpha1.ChangeSpec) error {
	p.doubts = p.doubts[:len(p.doubts)-1]
	if err := p.prepare(ctx, base, note, changes); err != nil {
		return err
	}
	p.discard(ctx, []pushNote{earlier})
	return nil
}

// accepted records the Changes of an accepted push.
func (p *pushes) accepted(ctx context.Context, note pushNote) error {
	if !note.Recorded || p.history == nil {
		return nil
	}
	return p.history.Record(ctx, note.Tip.String())
}

// unprepare deletes the prepared Changes of a push.
func (p *pushes) unprepare(ctx context.Context, note pushNote) {
	if !note.Recorded || p.history == nil {
		return
	}
	if err := p.history.Discard(ctx, note.Tip.String()); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to delete the prepared Changes of a push; they expire")
	}
}

// failed records that the last push returned an error. A push that the remote has rejected is not in doubt, and its Changes are deleted.
func (p *pushes) failed(ctx context.Context, note pushNote, err error) error {
	if errors.Is(err, gitrepo.ErrMoved) || errors.Is(err, gitrepo.ErrRefused) {
		p.doubts = p.doubts[:len(p.doubts)-1]
		p.discard(ctx, []pushNote{note})
	}
	return err
}

// passed drops all doubts: the branch has moved past the base of each, with a push that the remote has accepted.
func (p *pushes) passed(ctx context.Context, accepted pushNote) {
	dropped := slices.DeleteFunc(p.doubts, func(doubt pushNote) bool { return doubt.Tip == accepted.Tip })
	p.doubts = nil
	p.discard(ctx, dropped)
}

// discard deletes the prepared Changes of pushes that are recorded, or were not accepted and will not be, as far as known. An earlier push
// of the same changes within the same second may have the same tip and still be in doubt; then they are kept. Changes that are not deleted
// expire.
func (p *pushes) discard(ctx context.Context, dropped []pushNote) {
	for _, note := range dropped {
		same := func(doubt pushNote) bool { return doubt.Tip == note.Tip }
		if !slices.ContainsFunc(p.doubts, same) {
			p.unprepare(ctx, note)
		}
	}
}

// outlived reports whether a comparison is older than all rows that exist or may still arrive. While a destination changes all the time,
// it always has rows, but new ones.
func (p *pushes) outlived(comparison *notedComparison) bool {
	until := comparison.Time.Add(compareLag)
	if time.Now().Before(until) {
		return false
	}
	oldest := p.oldest(comparison.UID)
	return oldest.IsZero() || oldest.After(until)
}

// compare adds comparisons whose results are on the branch.
func (p *pushes) compare(comparisons []*notedComparison) {
	for _, comparison := range comparisons {
		p.compared = append(slices.DeleteFunc(p.compared, comparison.includes), comparison)
	}
}

// settle drops the doubts of pushes whose base is not the tip any more: they were accepted, and their Changes are recorded, or they never
// will be.
func (p *pushes) settle(ctx context.Context, tip gitrepo.Hash) {
	var dropped, kept []pushNote
	for _, note := range p.doubts {
		if note.Base == tip {
			kept = append(kept, note)
		} else {
			dropped = append(dropped, note)
		}
	}
	p.doubts = kept
	p.discard(ctx, dropped)
}
