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

// treeCollector collects a pack's commits and, unless commitsOnly is set, its trees.
type treeCollector struct {
	found       objects
	commitsOnly bool
	// bases and named have the possible bases of deltas, by offset in the pack and by hash. A base that is in neither was
	// skipped, and its deltas are skipped as well.
	bases map[int64]baseObject
	named map[Hash]baseObject
}

var _ packVisitor = &treeCollector{}

func newTreeCollector(commitsOnly bool) *treeCollector {
	return &treeCollector{
		found:       objects{trees: map[Hash][]byte{}, commits: map[Hash][]byte{}},
		commitsOnly: commitsOnly,
		bases:       map[int64]baseObject{},
		named:       map[Hash]baseObject{},
	}
}

func (k *treeCollector) visit(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error {
	var base baseObject
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
	return k.add(ctx, pack.budget, header.Offset, baseObject{kind: base.kind, content: content})
}

func (k *treeCollector) inflate(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error {
	content, err := pack.inflate(ctx, header)
	if err != nil {
		return err
	}
	return k.add(ctx, pack.budget, header.Offset, baseObject{kind: header.Type, content: content})
}

func (k *treeCollector) add(ctx context.Context, budget *budget, offset int64, object baseObject) error {
	if err := budget.hold(ctx, objectOverhead); err != nil {
		return err
	}
	if object.content == nil {
		object.content = []byte{} // The empty tree. Nil means skipped.
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
