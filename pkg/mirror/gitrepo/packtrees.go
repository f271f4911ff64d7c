// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"math"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// objects are the trees and commits of a pack.
type objects struct {
	trees   map[Hash][]byte
	commits map[Hash][]byte
}

// treeKeeper keeps a pack's commits and, unless only those are wanted, its trees.
type treeKeeper struct {
	found       objects
	commitsOnly bool
	// bases and named find what a delta is made against, by its place in the pack and by its hash. What is in neither was
	// skipped, and so is the delta.
	bases map[int64]keptObject
	named map[Hash]keptObject
}

var _ packVisitor = &treeKeeper{}

func newTreeKeeper(commitsOnly bool) *treeKeeper {
	return &treeKeeper{
		found:       objects{trees: map[Hash][]byte{}, commits: map[Hash][]byte{}},
		commitsOnly: commitsOnly,
		bases:       map[int64]keptObject{},
		named:       map[Hash]keptObject{},
	}
}

func (k *treeKeeper) visit(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error {
	var base keptObject
	switch header.Type {
	case plumbing.CommitObject:
		return k.inflate(ctx, pack, header)
	case plumbing.TreeObject:
		if k.commitsOnly {
			return pack.skip(header)
		}
		return k.inflate(ctx, pack, header)
	case plumbing.OFSDeltaObject:
		base = k.bases[header.OffsetReference]
	case plumbing.REFDeltaObject:
		base = k.named[header.Reference]
	}
	if base.content == nil {
		return pack.skip(header)
	}
	content, err := pack.patch(ctx, header, base.content, math.MaxInt64)
	if err != nil {
		return err
	}
	return k.keep(ctx, pack.budget, header.Offset, keptObject{kind: base.kind, content: content})
}

func (k *treeKeeper) inflate(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error {
	content, err := pack.inflate(ctx, header)
	if err != nil {
		return err
	}
	return k.keep(ctx, pack.budget, header.Offset, keptObject{kind: header.Type, content: content})
}

func (k *treeKeeper) keep(ctx context.Context, budget *budget, offset int64, object keptObject) error {
	if err := budget.hold(ctx, objectOverhead); err != nil {
		return err
	}
	if object.content == nil {
		object.content = []byte{} // The empty tree; nil would say that it was skipped.
	}
	hash := objectHash(object.kind, object.content)
	k.bases[offset], k.named[hash] = object, object
	if object.kind == plumbing.TreeObject {
		k.found.trees[hash] = object.content
	} else {
		k.found.commits[hash] = object.content
	}
	return nil
}
