// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// MaxContent is the size, in bytes, up to which Contents returns a file.
const MaxContent = 16 << 10

// Contents returns the contents of files by the hashes of their blobs, which must be in the branch as it was last read.
// It is for a few small files: what is larger than MaxContent is missing in the answer, and so is what the server
// cannot be made to give. Where a server gives no single blob, it is looked for in a pack of all of them, which is read
// until the last file is found and not kept.
func (b *Branch) Contents(ctx context.Context, blobs ...Hash) (map[Hash][]byte, error) {
	const doing = "read files"
	if len(blobs) == 0 {
		return map[Hash][]byte{}, nil
	}
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	found, err := b.pick(ctx, budget, blobs)
	if err == nil && found == nil {
		found, err = b.search(ctx, budget, blobs)
	}
	if err != nil {
		return nil, b.remote.failure(ctx, doing, err)
	}
	return found, nil
}

// pick asks for the blobs by their hashes. It returns nil where the server gives no objects that are no tips of branches;
// some give commits only.
func (b *Branch) pick(ctx context.Context, budget *budget, blobs []Hash) (map[Hash][]byte, error) {
	session, err := b.remote.open(ctx, uploadPack, budget)
	if err != nil {
		return nil, err
	}
	defer session.close()
	advertised, err := session.advertisement(ctx, "")
	if err != nil || !advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return nil, err
	}
	finder, err := newBlobFinder(blobs)
	if err != nil {
		return nil, err
	}
	if err := fetch(ctx, session, budget, advertised.Capabilities, Hash{}, want{objects: blobs, visitor: finder}); err != nil {
		return nil, nil // The server refuses in words of its own; what is wrong otherwise shows in the search.
	}
	return finder.found, nil
}

// search finds blobs among all of the tip.
func (b *Branch) search(ctx context.Context, budget *budget, blobs []Hash) (map[Hash][]byte, error) {
	finder, err := newBlobFinder(blobs)
	if err != nil {
		return nil, err
	}
	_, err = b.remote.fetchTip(ctx, budget, string(b.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobLimit(MaxContent+1, packp.BlobLimitPrefixNone), visitor: finder}, true
	})
	return finder.found, err
}
