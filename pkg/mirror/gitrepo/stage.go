// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// batch is what one push sends: commits in order, and the pack with their objects.
type batch struct {
	pack    *pack
	commits []Hash
	after   state
	// ahead are the commits with their files, for a Branch with a base.
	ahead []aheadCommit
}

// Stage adds a commit on top of what is pushed and staged. It returns the commit's hash and true, or false if the
// changes change no file: then there is no commit. An error about a path wraps errPath. After such an error, and after
// one from Sign, earlier staged commits remain.
func (b *Branch) Stage(commit Commit) (Hash, bool, error) {
	before := b.current()
	if err := b.checkPaths(commit.Changes); err != nil {
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	root, edit, blobs := applyChanges(before.root, commit.Changes)
	trees := edit.hashTrees(root)
	if len(trees) == 0 || len(root.entries) == 0 && len(before.root.entries) == 0 {
		return Hash{}, false, nil
	}
	encoded, err := commit.encode(root.hash, before.tip)
	if err != nil {
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	after := state{tip: objectHash(plumbing.CommitObject, encoded), root: root}
	if err := b.write(after, blobs, trees, encoded); err != nil {
		b.rollback() // The pack may hold part of the commit.
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	b.noteAhead(before, after, encoded)
	return after.tip, true, nil
}

// checkPaths returns an error for paths that are not valid or not in a managed folder.
func (b *Branch) checkPaths(changes []Change) error {
	for _, change := range changes {
		if err := checkPath(change.Path); err != nil {
			return err
		}
		if !b.folders.contain(change.Path) {
			return fmt.Errorf("%w: %q is outside the managed folders", errPath, change.Path)
		}
	}
	return nil
}

// blob is a file's content with its hash.
type blob struct {
	path    string
	hash    Hash
	content []byte
}

// applyChanges returns the root after the changes, without hashes of new trees, and the blobs that are new in it.
func applyChanges(root *directory, changes []Change) (*directory, *edit, []blob) {
	edit := newEdit()
	var blobs []blob
	for _, change := range changes {
		if change.Content == nil {
			root = edit.remove(root, change.Path)
			continue
		}
		hash, changesBefore := BlobHash(change.Content), edit.changes
		if root = edit.set(root, change.Path, hash); edit.changes != changesBefore {
			blobs = append(blobs, blob{path: change.Path, hash: hash, content: change.Content})
		}
	}
	tree := Tree{root: root}
	blobs = slices.DeleteFunc(blobs, func(b blob) bool { // A later change may have undone an earlier one.
		hash, found := tree.Lookup(b.path)
		return !found || hash != b.hash
	})
	return root, edit, blobs
}

// write adds a commit's objects to the last batch, or to a new one if that could exceed the size of a push.
func (b *Branch) write(after state, blobs []blob, trees []treeObject, commit []byte) error {
	size := len(commit) + packOverhead
	for _, blob := range blobs {
		size += len(blob.content) + packOverhead
	}
	for _, tree := range trees {
		size += tree.size + packOverhead
	}
	current, err := b.batchFor(size)
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := current.pack.add(plumbing.BlobObject, blob.hash, blob.content); err != nil {
			return err
		}
	}
	for _, tree := range trees {
		if err := current.pack.addTree(tree); err != nil {
			return err
		}
	}
	if err := current.pack.add(plumbing.CommitObject, after.tip, commit); err != nil {
		return err
	}
	current.commits = append(current.commits, after.tip)
	current.after = after
	return nil
}

// batchFor returns the batch with room for another size bytes, uncompressed.
func (b *Branch) batchFor(size int) (*batch, error) {
	if last := len(b.staged) - 1; last >= 0 && b.staged[last].pack.size()+size <= b.maxPack {
		return &b.staged[last], nil
	}
	pack, err := newPack(b.deflater, b.remote.completesPacks.Load() && !b.thinFailed)
	if err != nil {
		return nil, err
	}
	b.deflater = pack.deflater
	b.staged = append(b.staged, batch{pack: pack, after: b.current()})
	return &b.staged[len(b.staged)-1], nil
}

// Push sends all staged commits in order, in as many pushes as their size requires. Each is a compare-and-swap of the
// branch: of a Branch without a base never forced. It returns the commits that the remote has accepted. On error the other commits are dropped
// and the branch is back at the state that the remote is known to have: the caller stages the changes again, after a
// Refresh if the error is ErrMoved. Push sends nothing if nothing is staged.
func (b *Branch) Push(ctx context.Context) ([]Hash, error) {
	var accepted []Hash
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	for len(b.staged) > 0 {
		next := &b.staged[0]
		result, err := b.remote.push(ctx, budget, update{
			reference: b.reference, old: b.remoteTip, new: next.after.tip, thin: next.pack.thin, pack: next.pack.finish(),
		})
		// If the branch has moved, the remote may have deleted the bases of the pack's deltas.
		b.thinFailed = b.thinFailed || next.pack.thin && result.unpackFailed && !errors.Is(err, ErrMoved)
		if err != nil {
			b.rollback()
			b.forgetAhead()
			return accepted, b.remote.failure(ctx, "push", err)
		}
		b.pushed, b.remoteTip = next.after, next.after.tip
		b.pushedAhead(next.ahead)
		accepted = append(accepted, next.commits...)
		b.staged = b.staged[1:]
	}
	return accepted, nil
}
