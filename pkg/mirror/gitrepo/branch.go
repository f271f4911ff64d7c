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
	// DefaultMaxPackBytes is how much one push carries unless Options say otherwise: 16 MiB, below the limits that
	// hosting services put on requests.
	DefaultMaxPackBytes = 16 << 20
	// maxRefreshBytes is where fetching what is new is given up for fetching the tip alone: then history was rewritten
	// or the server cannot leave blobs out.
	maxRefreshBytes = 64 << 20
)

// Options say how a branch is held. The zero value holds all of it.
type Options struct {
	// ManagedFolders are the directories in which files are seen and changed; none means the whole repository. All
	// others are kept as they are, known by their hash only.
	ManagedFolders []string
	// MaxPackBytes bounds what one push carries, in bytes; zero is DefaultMaxPackBytes. A single commit that is larger
	// goes alone.
	MaxPackBytes int
}

// Branch is one branch of a remote repository: the state that the remote is known to have, and commits staged on top
// of it. It is for one goroutine.
type Branch struct {
	remote    *Remote
	reference plumbing.ReferenceName
	folders   folders
	maxPack   int

	pushed state
	staged []batch
	// thinFailed says that the server could not read a thin pack although it takes them by its own word.
	thinFailed bool
	deflater   *zlib.Writer
}

// state is a commit and its files.
type state struct {
	tip  Hash
	root *directory
}

// Load reads the tip of a branch and its directories, no file contents and no history. A branch that does not exist,
// also in an empty repository, has no files and a zero tip; the first push makes it, with a commit without parents.
func Load(ctx context.Context, remote *Remote, branch string, options Options) (*Branch, error) {
	const doing = "read the branch"
	reference := plumbing.NewBranchReferenceName(branch)
	if err := reference.Validate(); err != nil || branch == "" {
		return nil, &Error{Kind: Invalid, Doing: doing, Message: "the branch name " + branch + " is not valid"}
	}
	managed, err := newFolders(options.ManagedFolders)
	if err != nil {
		return nil, &Error{Kind: Invalid, Doing: doing, Message: err.Error(), cause: err}
	}
	b := &Branch{remote: remote, reference: reference, folders: managed, maxPack: options.MaxPackBytes}
	if b.maxPack <= 0 {
		b.maxPack = DefaultMaxPackBytes
	}
	b.pushed.root = emptyDirectory()
	ctx, budget := remote.begin(ctx)
	defer budget.end()
	if err := b.reload(ctx, budget); err != nil {
		return nil, remote.failure(ctx, doing, err)
	}
	return b, nil
}

// Tip returns the commit that the remote's branch is known to be at; zero if the branch does not exist.
func (b *Branch) Tip() Hash { return b.pushed.tip }

// Snapshot returns the files as they are with all staged commits.
func (b *Branch) Snapshot() *Tree { return &Tree{root: b.current().root} }

// Refresh brings the branch to where the remote is. Commits that were staged and not pushed are forgotten, so that they
// are staged again on the files as they are now. It takes what is new only, unless history was rewritten.
func (b *Branch) Refresh(ctx context.Context) error {
	const doing = "refresh the branch"
	b.rollback()
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	if b.pushed.tip.IsZero() {
		return b.remote.failure(ctx, doing, b.reload(ctx, budget))
	}
	err := b.catchUp(ctx, budget)
	if errors.Is(err, errTooLarge) || errors.Is(err, errIncomplete) {
		budget.release(budget.held)
		err = b.reload(ctx, budget)
	}
	return b.remote.failure(ctx, doing, err)
}

// catchUp reads what is new since the tip that is known.
func (b *Branch) catchUp(ctx context.Context, budget *budget) error {
	have, keeper := b.pushed.tip, newTreeKeeper(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(tip Hash) (want, bool) {
		return want{have: have, filter: packp.FilterBlobNone(), limit: maxRefreshBytes, visitor: keeper}, tip != have
	})
	if err != nil || tip == have {
		return err
	}
	return b.adopt(ctx, budget, tip, keeper.found)
}

// reload reads the tip alone.
func (b *Branch) reload(ctx context.Context, budget *budget) error {
	keeper := newTreeKeeper(false)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobNone(), visitor: keeper}, true
	})
	if err != nil {
		return err
	}
	return b.adopt(ctx, budget, tip, keeper.found)
}

// adopt makes the tip the pushed state.
func (b *Branch) adopt(ctx context.Context, budget *budget, tip Hash, fetched objects) error {
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

// Contains tells whether the commit is the remote's tip or among its ancestors by first parents, of which at most depth
// commits are looked at, the tip included. It tells whether a push landed whose answer was lost.
func (b *Branch) Contains(ctx context.Context, commit Hash, depth int) (bool, error) {
	const doing = "look for a commit"
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	keeper := newTreeKeeper(true)
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(tip Hash) (want, bool) {
		return want{depth: max(depth, 1), filter: packp.FilterTreeDepth(0), visitor: keeper}, tip != commit && depth > 1
	})
	if err != nil {
		return false, b.remote.failure(ctx, doing, err)
	}
	for at := tip; depth > 0 && !at.IsZero(); depth-- {
		if at == commit {
			return true, nil
		}
		content, found := keeper.found.commits[at]
		if !found {
			return false, nil
		}
		links, err := decodeCommit(content)
		if err != nil {
			return false, b.remote.failure(ctx, doing, refuse(Protocol, "%v", err))
		}
		at = links.parent
	}
	return false, nil
}

// current is the state with all staged commits.
func (b *Branch) current() state {
	if last := len(b.staged) - 1; last >= 0 {
		return b.staged[last].after
	}
	return b.pushed
}

// rollback forgets what is staged.
func (b *Branch) rollback() { b.staged = nil }

// emptyDirectory is the root of a branch without files. Its hash is zero, so it is never taken for a tree that the
// remote has.
func emptyDirectory() *directory { return &directory{} }
