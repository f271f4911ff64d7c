// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	// MaxBlob is the size, in bytes, up to which Remote.Blobs returns a file: 4 MiB, more than the manifest of any object that an API
	// server accepts.
	MaxBlob = 4 << 20
	// maxBlobs bounds the contents that one call of Remote.Blobs returns, in bytes.
	maxBlobs = 32 << 20
	// maxPastTrees bounds a pack with the trees of all commits since a past one, in bytes.
	maxPastTrees = 256 << 20
	// maxPastFiles is the default of Limits.PastFiles.
	maxPastFiles = 256 << 20
)

// Past is a commit of a branch's history.
type Past struct {
	// Branch is the name of the branch.
	Branch string
	// Commit is the hash of the commit; zero is the tip.
	Commit Hash
	// Behind is the number of first-parent commits between the tip and Commit: 0 if it is the tip, or if that is not known. It is
	// needed only if the server serves nothing but the tips of references.
	Behind int
}

// Tree returns the files of a folder as a commit has them, and the commit. File contents are not read. If Past.Commit is zero and the
// branch does not exist, the commit is zero and there are no files.
//
// A server that does not serve past commits by hash sends the directories of all commits since then, which is bounded.
func (r *Remote) Tree(ctx context.Context, at Past, folder string) (PastCommit, *Tree, error) {
	const op = "read the files of the commit"
	reference, err := referenceOf(at.Branch, op)
	if err != nil {
		return PastCommit{}, nil, err
	}
	managed, err := newFolders([]string{folder})
	if err != nil {
		return PastCommit{}, nil, &Error{Kind: Invalid, Op: op, Message: err.Error(), cause: err}
	}
	ctx, budget := r.begin(ctx)
	defer budget.end()
	collector := newTreeCollector(false)
	commit, err := r.fetchPast(ctx, budget, reference, at, func(want *want) {
		want.filter, want.visitor = packp.FilterBlobNone(), collector
	})
	if err != nil {
		return PastCommit{}, nil, r.failure(ctx, op, err)
	}
	if commit.IsZero() {
		return PastCommit{}, &Tree{root: emptyDirectory()}, nil
	}
	root, err := loadCommit(ctx, budget, commit, collector.found, managed, nil)
	if err != nil {
		return PastCommit{}, nil, r.failure(ctx, op, err)
	}
	past, err := decodePast(commit, collector.found.commits[commit])
	return past, &Tree{root: root}, r.failure(ctx, op, err)
}

// Size returns the memory that the tree takes, in bytes, roughly.
func (t *Tree) Size() int64 { return t.root.cost + objectOverhead }

// fetchPast fetches a commit alone, by its hash if the server serves it. Otherwise it fetches all commits since then. set sets the
// filter and the visitor. It returns the hash of the commit; zero for the tip of a branch that does not exist.
func (r *Remote) fetchPast(
	ctx context.Context, budget *budget, reference plumbing.ReferenceName, at Past, set func(*want),
) (Hash, error) {
	single, err := r.fetchCommit(ctx, budget, reference, at, 1, set)
	if err != nil || single.done {
		return single.commit, err
	}
	commit := at.Commit
	_, err = r.fetchTip(ctx, budget, string(reference), func(Hash) (want, bool) {
		wanted := want{depth: at.Behind + 1, limit: maxPastTrees}
		set(&wanted)
		return wanted, true
	})
	if errors.Is(err, errTooLarge) {
		err = tooLarge("the server does not serve past commits by hash (uploadpack.allowReachableSHA1InWant), and sends more than %s "+
			"of those since then", sizeText(maxPastTrees))
	}
	return commit, err
}

// fetched is the result of fetching a commit by hash.
type fetched struct {
	commit Hash
	// done is set unless the server does not serve the commit by hash.
	done bool
}

// fetchCommit fetches a commit and its ancestors up to a depth by hash.
func (r *Remote) fetchCommit(
	ctx context.Context, budget *budget, reference plumbing.ReferenceName, at Past, depth int, set func(*want),
) (fetched, error) {
	session, err := r.open(ctx, uploadPack, budget)
	if err != nil {
		return fetched{}, err
	}
	defer session.close()
	advertised, err := session.advertisement(ctx, string(reference))
	if err != nil {
		return fetched{}, err
	}
	tip := advertised.References[string(reference)]
	commit, isTip := at.Commit, at.Commit.IsZero() || at.Commit == tip
	if commit.IsZero() {
		commit = tip
	}
	switch {
	case commit.IsZero():
		return fetched{done: true}, nil
	case !isTip && !advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant):
		return fetched{}, nil
	}
	wanted := want{depth: depth, objects: []Hash{commit}}
	set(&wanted)
	err = fetch(ctx, session, budget, advertised.Capabilities, tip, wanted)
	if err != nil && !isTip && refusedByServer(err) {
		return fetched{}, nil // Servers refuse this in different ways. The next attempt returns any other error.
	}
	return fetched{commit: commit, done: true}, err
}

// refusedByServer reports whether an error may be the refusal of what was asked for, and not a limit of this side.
func refusedByServer(err error) bool { return !errors.Is(err, errTooLarge) }

// File returns the blob hash of the regular file at a path in a commit; zero if there is none. It reads no more than the directories down
// to the depth of the path, if the server supports filters.
func (r *Remote) File(ctx context.Context, at Past, path string) (Hash, error) {
	const op = "look for the file in the commit"
	reference, err := referenceOf(at.Branch, op)
	if err != nil {
		return Hash{}, err
	}
	ctx, budget := r.begin(ctx)
	defer budget.end()
	collector := newTreeCollector(false)
	commit, err := r.fetchPast(ctx, budget, reference, at, func(want *want) {
		want.filter, want.visitor = packp.FilterTreeDepth(uint64(strings.Count(path, "/")+1)), collector
	})
	if err != nil || commit.IsZero() {
		return Hash{}, r.failure(ctx, op, err)
	}
	links, err := decodeCommit(collector.found.commits[commit])
	if err != nil {
		return Hash{}, r.failure(ctx, op, refuse(Protocol, "%v", err))
	}
	found, err := collector.found.file(links.tree, path)
	return found, r.failure(ctx, op, err)
}

// file returns the hash of the file at a path in a tree; zero if there is none.
func (o objects) file(tree Hash, path string) (Hash, error) {
	for {
		encoded, found := o.trees[tree]
		if !found {
			return Hash{}, fmt.Errorf("%w: %s", errIncomplete, tree)
		}
		d, err := decodeTree(encoded)
		if err != nil {
			return Hash{}, refuse(Protocol, "the repository is damaged: %v", err)
		}
		step, rest, isFolder := strings.Cut(path, "/")
		at, exists := d.search(step, isFolder)
		switch {
		case !exists || !isFolder && !d.entries[at].isRegularFile():
			return Hash{}, nil
		case !isFolder:
			return d.entries[at].hash, nil
		}
		tree, path = d.entries[at].hash, rest
	}
}
