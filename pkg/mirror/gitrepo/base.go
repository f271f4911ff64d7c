// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// base is the branch to which the commits of a Branch are proposed, as it was last read.
type base struct {
	state
	name      string
	reference plumbing.ReferenceName
	// since is the commit at which what is proposed begins; see Options.Since.
	since Hash
	// fork is the parent of the first commit of ahead.
	fork Hash
	// ahead are the commits of the branch that the base lacks, oldest first: first parents only.
	ahead []aheadCommit
	// unread is set if ahead is not what the remote's branch has: after Rebase until its result is pushed, and if that fails. The next
	// refresh reads it.
	unread bool
}

// reloadWithBase reads both branches and the commits that the base lacks.
func (b *Branch) reloadWithBase(ctx context.Context, budget *budget) error {
	if err := b.reloadBase(ctx, budget); err != nil {
		return err
	}
	if err := b.reloadTip(ctx, budget); err != nil {
		return err
	}
	b.base.unread = false
	if b.remoteTip.IsZero() || b.remoteTip == b.base.since {
		b.startAnew()
		return nil
	}
	return b.readAhead(ctx, budget)
}

// reloadBase reads the tip of the base alone.
func (b *Branch) reloadBase(ctx context.Context, budget *budget) error {
	collector := newTreeCollector(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.base.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobNone(), visitor: collector}, true
	})
	if err != nil {
		return err
	}
	return b.adoptBase(ctx, budget, tip, collector.found)
}

// adoptBase sets the base to its new tip.
func (b *Branch) adoptBase(ctx context.Context, budget *budget, tip Hash, fetched objects) error {
	if tip.IsZero() {
		return refuse(NotFound, "the repository has no branch %s, to which changes are to be proposed: create it", b.base.name)
	}
	root, err := loadCommit(ctx, budget, tip, fetched, b.folders, b.base.root)
	if err != nil {
		return err
	}
	b.base.state = state{tip: tip, root: root}
	return nil
}

// startAnew starts from the base, with nothing to propose. The remote's branch stays as it is until the next push replaces it.
func (b *Branch) startAnew() {
	b.rollback()
	b.pushed = b.base.state
	b.base.ahead, b.base.fork = nil, b.base.tip
}

// refreshWithBase updates the branch and its base.
func (b *Branch) refreshWithBase(ctx context.Context, budget *budget) error {
	if b.base.unread || b.base.tip.IsZero() {
		return b.reload(ctx, budget)
	}
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(Hash) (want, bool) { return want{}, false })
	switch {
	case err != nil:
		return err
	case tip.IsZero():
		b.remoteTip = tip
	case tip != b.remoteTip:
		return b.reload(ctx, budget)
	}
	return b.refreshBase(ctx, budget)
}

// refreshBase fetches what is new in the base. Commits that it has now are no longer ahead of it.
func (b *Branch) refreshBase(ctx context.Context, budget *budget) error {
	have, collector := b.base.tip, newTreeCollector(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.base.reference), func(tip Hash) (want, bool) {
		return want{have: have, filter: packp.FilterBlobNone(), limit: maxRefreshBytes, visitor: collector}, tip != have
	})
	if err != nil || tip == have {
		return err
	}
	if err := b.adoptBase(ctx, budget, tip, collector.found); err != nil {
		return err
	}
	for i, commit := range slices.Backward(b.base.ahead) {
		if _, merged := collector.found.commits[commit.hash]; merged {
			b.base.ahead, b.base.fork = b.base.ahead[i+1:], commit.hash
			break
		}
	}
	if len(b.base.ahead) == 0 {
		b.startAnew()
	}
	return nil
}

// source returns the branch of the remote that has the files of the pushed state.
func (b *Branch) source() plumbing.ReferenceName {
	if b.base != nil && b.pushed.tip != b.remoteTip {
		return b.base.reference
	}
	return b.reference
}

// Behind reports whether the base has commits that the branch lacks, so that it is to be rebased.
func (b *Branch) Behind() bool {
	return b.base != nil && len(b.base.ahead) > 0 && b.base.fork != b.base.tip
}

// Missing reports whether the remote no longer has the branch, although commits of it are not in the base.
func (b *Branch) Missing() bool {
	return b.base != nil && len(b.base.ahead) > 0 && b.remoteTip.IsZero()
}

// BaseTree returns the files of the base. The branch must have one.
func (b *Branch) BaseTree() *Tree { return &Tree{root: b.base.root} }

// BaseTip returns the last known tip of the base; zero without a base.
func (b *Branch) BaseTip() Hash {
	if b.base == nil {
		return Hash{}
	}
	return b.base.tip
}
