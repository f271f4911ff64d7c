// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Rebase puts the commits that the base lacks on its tip, without those up to and including after (none if it is zero or unknown) and
// those for which owns returns false, and stages them: Push then replaces the remote's branch. A commit keeps its author, message and
// times, and is signed again, which is why commits of others must not be among them. One that changes nothing any more is dropped, and
// all are if the result does not differ from the base. Then nothing is staged, and the branch starts anew.
//
// Files outside the managed folders are those of the base. It returns the tips that have the changes up to each commit, by that commit.
func (b *Branch) Rebase(after Hash, owns func(commit Hash) bool, sign func(commit []byte) (string, error)) (map[Hash]Hash, error) {
	b.rollback()
	kept := b.base.ahead
	if at := slices.IndexFunc(kept, func(c aheadCommit) bool { return c.hash == after }); at >= 0 {
		kept, b.base.since = kept[at+1:], after
	}
	from, tips := b.pushed, map[Hash]Hash{}
	b.startAnew()
	for _, commit := range kept {
		if owns(commit.hash) {
			if err := b.stageAgain(stagedCommit{commit, sign}, nil); err != nil {
				b.rollback()
				b.pushed, b.base.unread = from, true
				return nil, fmt.Errorf("rebase the branch: %w", err)
			}
		}
		tips[commit.hash] = b.current().tip
	}
	if b.current().root.hash == b.base.root.hash {
		b.rollback()
	}
	b.base.unread = len(b.staged) > 0 // Until they are pushed, the remote's branch has the earlier commits.
	return tips, nil
}

// stageAgain stages a commit on top of what is pushed and staged, with the files of an earlier one. from has the blobs that the remote
// lacks; it is nil if the remote has all.
func (b *Branch) stageAgain(commit stagedCommit, from *pack) error {
	before, edit := b.current(), newEdit()
	root := before.root
	var blobs []blob
	for _, file := range commit.files {
		if file.hash.IsZero() {
			root = edit.remove(root, file.path)
		} else {
			root = edit.set(root, file.path, file.hash)
		}
		if packed := from.packed(file.hash); packed != nil {
			blobs = append(blobs, blob{path: file.path, hash: file.hash, packed: packed})
		}
	}
	trees := edit.hashTrees(root)
	if len(trees) == 0 {
		return nil
	}
	object, err := withParent(commit.object, root.hash, before.tip, commit.sign)
	if err != nil {
		return err
	}
	after := state{tip: objectHash(plumbing.CommitObject, object), root: root}
	return b.write(newStagedCommit(before, after, object, commit.sign), after, blobs, trees)
}

// withParent returns a commit object with another tree and parent. Its signature is made anew, or dropped if sign is nil.
func withParent(object []byte, tree, parent Hash, sign func([]byte) (string, error)) ([]byte, error) {
	head, message, _ := bytes.Cut(object, []byte("\n\n"))
	var header bytes.Buffer
	fmt.Fprintf(&header, "tree %s\nparent %s\n", tree, parent)
	kept := false
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		if !bytes.HasPrefix(line, []byte(" ")) { // A line that begins with a space continues the header before.
			name, _, _ := bytes.Cut(line, []byte(" "))
			kept = slices.Contains([]string{"author", "committer", "encoding"}, string(name))
		}
		if kept {
			header.Write(line)
			header.WriteByte('\n')
		}
	}
	body := append([]byte("\n"), message...)
	if sign == nil {
		return append(header.Bytes(), body...), nil
	}
	signature, err := sign(slices.Concat(header.Bytes(), body))
	if err != nil {
		return nil, fmt.Errorf("sign the commit: %w", err)
	}
	writeSignature(&header, signature)
	return append(header.Bytes(), body...), nil
}

// writeSignature adds a signature to the header of a commit object. Continuation lines of a header begin with a space.
func writeSignature(header *bytes.Buffer, signature string) {
	fmt.Fprintf(header, "gpgsig %s\n", strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n "))
}

// StartAnew drops everything that the base lacks: the branch is at its base, and the next push replaces the remote's branch.
func (b *Branch) StartAnew() {
	if !b.remoteTip.IsZero() {
		b.base.since = b.remoteTip
	}
	b.startAnew()
}

// Recreate creates the branch again at the remote, which has lost it, with the commits that it had. It fails with an Error of the kind
// Rejected if the remote has lost these, too.
func (b *Branch) Recreate(ctx context.Context) error {
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	pack, err := newPack(b.deflater, false)
	if err != nil {
		return err
	}
	b.deflater = pack.deflater
	_, err = b.remote.push(ctx, budget, update{reference: b.reference, new: b.pushed.tip, pack: pack.finish()}, nil)
	if err == nil {
		b.remoteTip = b.pushed.tip
	}
	return b.remote.failure(ctx, "create the branch again", err)
}

// forgetAhead records that a push has failed: after Rebase, what the remote's branch has is read again.
func (b *Branch) forgetAhead() {
	if b.base != nil && b.pushed.tip != b.remoteTip {
		b.base.unread = true
	}
}
