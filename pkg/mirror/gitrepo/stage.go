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

// batch is what goes to the remote in one push: commits in order and the pack that holds their objects.
type batch struct {
	pack    *pack
	commits []Hash
	after   state
}

// Stage lays a commit on top of what is pushed and staged. It returns the commit's hash and true, or false if no file
// changes by it: then no commit is made. After an error about a path, which has ErrPath in its chain, or from Sign, what
// was staged before remains.
func (b *Branch) Stage(commit Commit) (Hash, bool, error) {
	before := b.current()
	if err := b.checkPaths(commit.Changes); err != nil {
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	root, edit, blobs := applyChanges(before.root, commit.Changes)
	trees := edit.seal(root)
	if len(trees) == 0 || len(root.entries) == 0 && len(before.root.entries) == 0 {
		return Hash{}, false, nil
	}
	encoded, err := commit.encode(root.hash, before.tip)
	if err != nil {
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	after := state{tip: objectHash(plumbing.CommitObject, encoded), root: root}
	if err := b.write(after, blobs, trees, encoded); err != nil {
		b.rollback() // The pack may hold half a commit.
		return Hash{}, false, fmt.Errorf("stage a commit: %w", err)
	}
	return after.tip, true, nil
}

// checkPaths refuses paths that cannot be and those of other people.
func (b *Branch) checkPaths(changes []Change) error {
	for _, change := range changes {
		if err := checkPath(change.Path); err != nil {
			return err
		}
		if !b.folders.contain(change.Path) {
			return fmt.Errorf("%w: %q is outside the managed folders", ErrPath, change.Path)
		}
	}
	return nil
}

// blob is a file's content under its name in Git.
type blob struct {
	path    string
	hash    Hash
	content []byte
}

// applyChanges returns the root after the changes, not sealed yet, and the blobs that became part of it.
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
	blobs = slices.DeleteFunc(blobs, func(b blob) bool { // What a later change undid.
		hash, found := tree.Lookup(b.path)
		return !found || hash != b.hash
	})
	return root, edit, blobs
}

// write puts a commit's objects into the last batch, or into a new one if that could grow too large.
func (b *Branch) write(after state, blobs []blob, trees []sealedTree, commit []byte) error {
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

// batchFor returns the batch that takes another size bytes, uncompressed.
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

// Push sends all staged commits in order, as many pushes as their size asks for, each moving the branch from where it
// was last seen and never by force. It returns the commits that the remote has now accepted. On any error the rest is
// forgotten and the files are again those that the remote is known to have: stage again what still has to change, after
// a Refresh if the error is ErrMoved. With nothing staged nothing is sent.
func (b *Branch) Push(ctx context.Context) ([]Hash, error) {
	var accepted []Hash
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	for len(b.staged) > 0 {
		next := &b.staged[0]
		learned, err := b.remote.push(ctx, budget, update{
			reference: b.reference, old: b.pushed.tip, new: next.after.tip, thin: next.pack.thin, pack: next.pack.finish(),
		})
		// Where the branch is elsewhere, the objects that the pack builds on may be gone.
		b.thinFailed = b.thinFailed || next.pack.thin && learned.unpackFailed && !errors.Is(err, ErrMoved)
		if err != nil {
			b.rollback()
			return accepted, b.remote.failure(ctx, "push", err)
		}
		b.pushed = next.after
		accepted = append(accepted, next.commits...)
		b.staged = b.staged[1:]
	}
	return accepted, nil
}
