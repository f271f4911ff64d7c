// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"compress/zlib"
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const (
	// DefaultMaxPackBytes is the default of Options.MaxPackBytes: 16 MiB, below the request limits of hosting services.
	DefaultMaxPackBytes = 16 << 20
	// maxRefreshBytes bounds an incremental fetch, in bytes. Beyond it the tip alone is fetched: history was rewritten, or
	// the server does not omit blobs.
	maxRefreshBytes = 64 << 20
)

// Options configure a Branch. The zero value manages the whole repository.
type Options struct {
	// ManagedFolders are the directories in which files are visible and can be changed; none means the whole repository.
	// All others stay unchanged, and only their hash is held.
	ManagedFolders []string
	// Base, if set, is the branch to which the commits of this one are proposed. The Branch then starts from it, holds which
	// commits it lacks, and can be put on its new tip; see Branch.Rebase.
	Base string
	// Since is a commit of the branch at which what is proposed begins: neither it nor what is before it is, even if the
	// base lacks it. Zero if there is none.
	Since Hash
	// MaxPackBytes bounds the pack of one push, in bytes; zero is DefaultMaxPackBytes. A larger commit is pushed alone.
	MaxPackBytes int
}

// Branch is one branch of a remote repository: the last known state of the remote, and commits staged on top of it. It
// is not safe for concurrent use.
type Branch struct {
	remote    *Remote
	reference plumbing.ReferenceName
	folders   folders
	maxPack   int

	// remoteTip is the last known tip of the remote's branch. It is that of pushed, unless the Branch starts anew from its
	// base.
	remoteTip Hash
	pushed    state
	staged    []batch
	// base is nil without Options.Base.
	base *base
	// thinFailed is set if the server could not unpack a thin pack although it advertises that it can.
	thinFailed bool
	deflater   *zlib.Writer
}

// state is a commit and its files.
type state struct {
	tip  Hash
	root *directory
}

// Load reads the tip of a branch and its directories, but neither file contents nor history. A branch that does not
// exist has no files and a zero tip; the first push creates it with a root commit.
func Load(ctx context.Context, remote *Remote, branch string, options Options) (*Branch, error) {
	const op = "read the branch"
	reference, err := referenceOf(branch, op)
	if err != nil {
		return nil, err
	}
	managed, err := newFolders(options.ManagedFolders)
	if err != nil {
		return nil, &Error{Kind: Invalid, Op: op, Message: err.Error(), cause: err}
	}
	b := &Branch{remote: remote, reference: reference, folders: managed, maxPack: options.MaxPackBytes}
	if b.maxPack <= 0 {
		b.maxPack = DefaultMaxPackBytes
	}
	b.pushed.root = emptyDirectory()
	if options.Base != "" {
		reference, err := referenceOf(options.Base, op)
		if err != nil {
			return nil, err
		}
		b.base = &base{name: options.Base, reference: reference, since: options.Since}
	}
	ctx, budget := remote.begin(ctx)
	defer budget.end()
	if err := b.reload(ctx, budget); err != nil {
		return nil, remote.failure(ctx, op, err)
	}
	return b, nil
}

// Tip returns the last known tip of the remote's branch; zero if the branch does not exist.
func (b *Branch) Tip() Hash { return b.remoteTip }

// Snapshot returns the files with all staged commits applied.
func (b *Branch) Snapshot() *Tree { return &Tree{root: b.current().root} }

// Refresh updates the branch to the remote's tip and drops staged commits, so that the caller can stage them again on
// the new state. It fetches only new objects, unless history was rewritten.
func (b *Branch) Refresh(ctx context.Context) error {
	const op = "refresh the branch"
	b.rollback()
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	if b.base == nil && b.pushed.tip.IsZero() {
		return b.remote.failure(ctx, op, b.reload(ctx, budget))
	}
	refresh := b.fetchNew
	if b.base != nil {
		refresh = b.refreshWithBase
	}
	err := refresh(ctx, budget)
	if errors.Is(err, errTooLarge) || errors.Is(err, errIncomplete) {
		budget.release(budget.held)
		err = b.reload(ctx, budget)
	}
	return b.remote.failure(ctx, op, err)
}

// fetchNew fetches what is new since the known tip.
func (b *Branch) fetchNew(ctx context.Context, budget *budget) error {
	have, collector := b.pushed.tip, newTreeCollector(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(tip Hash) (want, bool) {
		return want{have: have, filter: packp.FilterBlobNone(), limit: maxRefreshBytes, visitor: collector}, tip != have
	})
	if err != nil || tip == have {
		return err
	}
	return b.adopt(ctx, budget, tip, collector.found)
}

// reload fetches the tip alone, and with a base which commits that lacks.
func (b *Branch) reload(ctx context.Context, budget *budget) error {
	if b.base != nil {
		return b.reloadWithBase(ctx, budget)
	}
	return b.reloadTip(ctx, budget)
}

func (b *Branch) reloadTip(ctx context.Context, budget *budget) error {
	collector := newTreeCollector(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobNone(), visitor: collector}, true
	})
	if err != nil {
		return err
	}
	return b.adopt(ctx, budget, tip, collector.found)
}

// adopt sets the pushed state to the tip of the remote.
func (b *Branch) adopt(ctx context.Context, budget *budget, tip Hash, fetched objects) error {
	b.remoteTip = tip
	if tip.IsZero() {
		b.pushed = state{root: emptyDirectory()}
		return nil
	}
	root, err := loadCommit(ctx, budget, tip, fetched, b.folders, b.pushed.root)
	if err != nil {
		return err
	}
	b.pushed = state{tip: tip, root: root}
	return nil
}

// Contains reports whether the commit is the remote's tip or one of its first-parent ancestors. It reads at most depth
// commits, the tip included. It is used to find out whether a push succeeded whose response was lost.
func (b *Branch) Contains(ctx context.Context, commit Hash, depth int) (bool, error) {
	const op = "look for a commit"
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	collector := newTreeCollector(true)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(tip Hash) (want, bool) {
		return want{depth: max(depth, 1), filter: packp.FilterTreeDepth(0), visitor: collector}, tip != commit && depth > 1
	})
	if err != nil {
		return false, b.remote.failure(ctx, op, err)
	}
	for at := tip; depth > 0 && !at.IsZero(); depth-- {
		if at == commit {
			return true, nil
		}
		content, found := collector.found.commits[at]
		if !found {
			return false, nil
		}
		links, err := decodeCommit(content)
		if err != nil {
			return false, b.remote.failure(ctx, op, refuse(Protocol, "%v", err))
		}
		at = links.parent
	}
	return false, nil
}

// current returns the state with all staged commits applied.
func (b *Branch) current() state {
	if last := len(b.staged) - 1; last >= 0 {
		return b.staged[last].after
	}
	return b.pushed
}

// rollback drops the staged commits.
func (b *Branch) rollback() { b.staged = nil }

// emptyDirectory returns the root of a branch without files. Its hash is zero, so it never matches a tree of the remote.
func emptyDirectory() *directory { return &directory{} }
