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
	commits []stagedCommit
	after   state
}

// stagedCommit is a commit that was staged, with what is needed to stage it again on another one.
type stagedCommit struct {
	aheadCommit
	// sign is nil if the commit has no signature.
	sign func(commit []byte) (string, error)
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
	if err := b.write(newStagedCommit(before, after, encoded, commit.Sign), after, blobs, trees); err != nil {
		b.rollback() // The pack may hold part of the commit.
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
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
	// packed is the blob as it is in an earlier pack; nil if content has it.
	packed []byte
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
func (b *Branch) write(commit stagedCommit, after state, blobs []blob, trees []treeObject) error {
	size := len(commit.object) + packOverhead
	for _, blob := range blobs {
		size += len(blob.content) + len(blob.packed) + packOverhead
	}
	for _, tree := range trees {
		size += tree.size + packOverhead
	}
	current, err := b.batchFor(size)
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if blob.packed != nil {
			current.pack.addPacked(blob.hash, blob.packed)
		} else if err := current.pack.add(plumbing.BlobObject, blob.hash, blob.content); err != nil {
			return err
		}
	}
	for _, tree := range trees {
		if err := current.pack.addTree(tree); err != nil {
			return err
		}
	}
	if err := current.pack.add(plumbing.CommitObject, after.tip, commit.object); err != nil {
		return err
	}
	current.commits = append(current.commits, commit)
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
func (b *Branch) Push(ctx context.Context) ([]Hash, error) { return b.push(ctx, nil) }

func (b *Branch) push(ctx context.Context, moved func(context.Context, map[Hash]Hash) error) ([]Hash, error) {
	var accepted []Hash
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	for len(b.staged) > 0 {
		if err := b.pushNext(ctx, budget, moved); err != nil {
			b.rollback()
			b.forgetAhead()
			return accepted, b.remote.failure(ctx, "push", err)
		}
		next := &b.staged[0]
		b.pushed, b.remoteTip = next.after, next.after.tip
		b.pushedAhead(next.commits)
		for _, commit := range next.commits {
			accepted = append(accepted, commit.hash)
		}
		b.staged = b.staged[1:]
	}
	if b.base != nil && len(accepted) > 0 {
		b.base.unread = false
	}
	return accepted, nil
}

// pushNext sends the first batch. If moved is not nil, it puts the staged commits on the new tips that other writers push meanwhile.
func (b *Branch) pushNext(ctx context.Context, budget *budget, moved func(context.Context, map[Hash]Hash) error) error {
	follow := func(ctx context.Context) (update, error) {
		renamed, err := b.follow(ctx, budget)
		if err == nil {
			err = moved(ctx, renamed)
		}
		if err != nil {
			return update{}, err
		}
		return b.nextUpdate(), nil
	}
	u := b.nextUpdate()
	result, err := b.remote.push(ctx, budget, u, nil)
	for try := 0; try < maxFollows && moved != nil && b.base == nil && len(b.staged) > 0 && errors.Is(err, ErrMoved); try++ {
		result, err = b.remote.push(ctx, budget, u, follow)
	}
	// If the branch has moved, the remote may have deleted the bases of the pack's deltas.
	b.thinFailed = b.thinFailed || result.unpackFailed && !errors.Is(err, ErrMoved)
	return err
}

// Staged returns the staged commits, oldest first.
func (b *Branch) Staged() (commits []Hash) {
	for _, each := range b.staged {
		for _, commit := range each.commits {
			commits = append(commits, commit.hash)
		}
	}
	return commits
}

// nextUpdate returns the update that pushes the first batch.
func (b *Branch) nextUpdate() update {
	next := &b.staged[0]
	return update{
		reference: b.reference, old: b.remoteTip, new: next.after.tip, thin: next.pack.thin, pack: next.pack.finish(),
	}
}
