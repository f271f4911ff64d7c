// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// pushes records the pushes of a branch, in the push log and in the commit index.
type pushes struct {
	key branchKey
	log *pushLog
	// index is nil if commits of objects are not recorded.
	index CommitIndex
	// doubts are the pushes of which it is unknown whether the remote has accepted them, oldest first. Their rows are still in the outbox.
	doubts []pushNote
	// read is set once doubts include those of the previous process.
	read bool
	// compared are the comparisons that may be newer than rows.
	compared []comparedScope
	// oldest returns when the oldest pending change of a destination was seen, zero if there is none.
	oldest func(types.UID) time.Time
}

// restore adds the doubts of the previous process, and returns them. Further calls do nothing.
func (p *pushes) restore(ctx context.Context) ([]pushNote, error) {
	if p.read {
		return nil, nil
	}
	doubts, err := p.log.read(ctx, p.key)
	if err != nil {
		return nil, err
	}
	p.doubts, p.read = doubts, true
	return doubts, nil
}

// prepare writes the note of a push on top of base, and its entries, before it is sent. The note lets the next process find out whether
// the remote has accepted the push, if this one dies meanwhile.
func (p *pushes) prepare(ctx context.Context, base gitrepo.Hash, note *pushNote, entries []commitindex.Entry) error {
	p.compared = slices.DeleteFunc(p.compared, p.outlived)
	note.Base, note.Compared = base, slices.Clone(p.compared)
	if note.Indexed = len(entries) > 0; note.Indexed {
		if err := p.index.Prepare(ctx, note.Tip.String(), entries); err != nil {
			return err
		}
	}
	notes := append(slices.Clone(p.doubts[max(0, len(p.doubts)-keptDoubts+1):]), *note)
	if err := p.log.write(ctx, p.key, notes); err != nil {
		return err
	}
	p.doubts = notes
	return nil
}

// accepted confirms the entries of an accepted push.
func (p *pushes) accepted(ctx context.Context, note pushNote) error {
	if !note.Indexed || p.index == nil {
		return nil
	}
	return p.index.Record(ctx, note.Tip.String())
}

// failed records that the last push returned an error. A push that the remote has rejected is not in doubt, and its entries are withdrawn.
// An earlier push of the same changes within the same second may have the same tip and still be in doubt; then they are kept. Entries that
// are not withdrawn expire.
func (p *pushes) failed(ctx context.Context, note pushNote, err error) error {
	if !errors.Is(err, gitrepo.ErrMoved) {
		return err
	}
	p.doubts = p.doubts[:len(p.doubts)-1]
	same := func(doubt pushNote) bool { return doubt.Tip == note.Tip }
	if !note.Indexed || slices.ContainsFunc(p.doubts, same) {
		return err
	}
	return errors.Join(err, p.index.Discard(ctx, note.Tip.String()))
}

// outlived reports whether a comparison is older than all rows that exist or may still arrive. While a destination changes all the time,
// it always has rows, but new ones.
func (p *pushes) outlived(scope comparedScope) bool {
	until := scope.Time.Add(compareLag)
	if time.Now().Before(until) {
		return false
	}
	oldest := p.oldest(scope.UID)
	return oldest.IsZero() || oldest.After(until)
}

// compare adds comparisons whose results are on the branch.
func (p *pushes) compare(scopes []comparedScope) {
	for _, scope := range scopes {
		p.compared = append(slices.DeleteFunc(p.compared, scope.includes), scope)
	}
}

// settle drops the doubts of pushes whose base is not the tip any more: they were accepted, or never will be.
func (p *pushes) settle(tip gitrepo.Hash) {
	p.doubts = slices.DeleteFunc(p.doubts, func(note pushNote) bool { return note.Base != tip })
}
