// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// containsDepth is how many commits of the remote are searched for a push. It is missed only if other writers pushed more
// commits since.
const containsDepth = 256

// recovery finds out which pushes in doubt the remote has accepted.
type recovery struct {
	pushes *pushes
	outbox *outbox.Outbox
	// destinations returns the destinations that pushes to the branch may have changes of, some of them twice.
	destinations func() []*destination
}

// run settles the pushes in doubt of a branch. The rows of an accepted push are removed: pushing them
// again would write history twice. A push whose base is still the branch's tip has not been accepted, but it may be while the
// next one is prepared, because the server may still process it.
func (r *recovery) run(ctx context.Context, branch *gitrepo.Branch) error {
	restored, err := r.pushes.restore(ctx)
	if err != nil || len(r.pushes.doubts) == 0 {
		return err
	}
	destinations := r.destinations()
	for _, note := range restored {
		r.supersede(destinations, note.Compared)
	}
	tip := branch.Tip()
	for _, note := range r.pushes.doubts {
		if note.Base == tip {
			continue
		}
		if err := r.settle(ctx, branch, destinations, note); err != nil {
			return err
		}
	}
	r.pushes.settle(ctx, tip)
	return nil
}

// settle records a push and removes its rows if the remote has accepted it.
func (r *recovery) settle(ctx context.Context, branch *gitrepo.Branch, destinations []*destination, note pushNote) error {
	accepted, err := branch.Contains(ctx, note.Tip, containsDepth)
	if err != nil || !accepted {
		return err
	}
	if err := r.pushes.accepted(ctx, note); err != nil {
		return err
	}
	r.supersede(destinations, note.Compares)
	for _, d := range destinations {
		if err := r.removeThrough(ctx, d, note.Through[d.uid]); err != nil {
			return err
		}
	}
	return nil
}

// supersede takes over the comparisons of an earlier process: its remaining rows of older changes would revert files to an
// older state.
func (r *recovery) supersede(destinations []*destination, comparisons []*notedComparison) {
	for _, d := range destinations {
		for _, comparison := range comparisons {
			if comparison.UID != d.uid {
				continue
			}
			for scope, at := range comparison.listed {
				d.seeds.listedAt(scope, at)
			}
		}
	}
	r.pushes.compare(comparisons)
}

// removedBytes is the size of the contents that removeThrough reads at once.
const removedBytes = 8 << 20

// removeThrough removes a destination's rows up to and including a sequence.
func (r *recovery) removeThrough(ctx context.Context, d *destination, sequence uint64) error {
	for sequence > 0 {
		rows, err := r.outbox.Next(ctx, d.uid, d.queue.Fitting(outbox.MaxBatch, removedBytes), removedBytes)
		if err != nil {
			return err
		}
		done := slices.DeleteFunc(rows, func(row outbox.Row) bool { return row.Sequence > sequence })
		if len(done) == 0 {
			return nil
		}
		if err := removeRows(ctx, r.outbox, d, done); err != nil {
			return err
		}
	}
	return nil
}
