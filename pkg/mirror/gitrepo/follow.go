// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
)

// maxFollows bounds how often one push follows other writers. A writer that pushes without a pause is faster in many attempts, but
// hardly ever in all of so many.
const maxFollows = 16

// PushFollowing is Push for a branch to which others push all the time. If the remote has moved and no managed folder has changed, it puts
// the staged commits on the new tip and sends these, up to maxFollows times. Before it sends them, it calls moved with their hashes by
// those that the commits had before; Tip is the new tip by then. Nothing is sent if moved returns an error, which is returned.
//
// It returns ErrMoved in all other cases in which the remote has moved: as after Push, the caller refreshes the branch and stages its
// changes again.
func (b *Branch) PushFollowing(ctx context.Context, moved func(ctx context.Context, renamed map[Hash]Hash) error) ([]Hash, error) {
	return b.push(ctx, moved)
}

// follow fetches what is new on the remote's branch, stages the staged commits again on its tip, and returns their hashes by those before.
// It returns ErrMoved, with nothing staged, if that would change what the caller has decided on: a managed folder differs, or the
// branch is new or deleted. Rewritten history alone does not matter, if the managed folders have the same content.
func (b *Branch) follow(ctx context.Context, budget *budget) (map[Hash]Hash, error) {
	before, staged := b.pushed, b.staged
	b.rollback()
	if before.tip.IsZero() {
		return nil, ErrMoved
	}
	held := budget.held
	err := b.fetchNew(ctx, budget)
	budget.release(budget.held - held)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errIncomplete):
		return nil, ErrMoved // Refresh loads the branch then.
	case err != nil:
		return nil, err
	case b.remoteTip.IsZero(), !b.sameFolders(before.root):
		return nil, ErrMoved
	}
	renamed := map[Hash]Hash{}
	for _, each := range staged {
		for _, commit := range each.commits {
			if err := b.stageAgain(commit, each.pack); err != nil {
				b.rollback()
				return nil, err
			}
			renamed[commit.hash] = b.current().tip
		}
	}
	return renamed, nil
}

// sameFolders reports whether the managed folders, and whether there can be files in them, are the same as below another root.
func (b *Branch) sameFolders(root *directory) bool {
	before, now := Tree{root: root}, b.Snapshot()
	if len(b.folders) == 0 {
		return root.hash == now.root.hash
	}
	for _, folder := range b.folders {
		hash, exists := before.FolderHash(folder)
		hashNow, existsNow := now.FolderHash(folder)
		if hash != hashNow || exists != existsNow || before.Obstacle(folder) != now.Obstacle(folder) {
			return false
		}
	}
	return true
}
