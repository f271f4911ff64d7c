// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	// MaxContent is the size, in bytes, up to which Contents returns a file.
	MaxContent = 16 << 10
	// maxContents bounds what is held at a time to find contents, in bytes.
	maxContents = 64 << 20
)

// Contents returns the contents of files by the hashes of their blobs, which must be in the branch as it was last read.
// It is for a few small files: what is larger than MaxContent is missing in the answer, and so is what the server
// cannot be made to give. Where a server gives no single blob, all small ones are fetched.
func (b *Branch) Contents(ctx context.Context, blobs ...Hash) (map[Hash][]byte, error) {
	const doing = "read files"
	if len(blobs) == 0 {
		return map[Hash][]byte{}, nil
	}
	session, err := b.remote.open(ctx, uploadPack)
	if err != nil {
		return nil, b.remote.failure(ctx, doing, err)
	}
	defer session.close()
	advertised, err := session.advertisement(ctx)
	if err != nil {
		return nil, b.remote.failure(ctx, doing, err)
	}
	if givesBlobs(advertised.Capabilities) {
		wanted := want{objects: blobs, limit: maxContents, blobs: MaxContent}
		if found, err := fetch(ctx, session, advertised.Capabilities, Hash{}, wanted); err == nil {
			return found.only(blobs), nil
		}
	}
	return b.search(ctx, doing, blobs)
}

// givesBlobs says whether a server offers objects that are no tips of branches. Some offer commits only.
func givesBlobs(offered *capability.List) bool {
	return offered.Supports(capability.AllowReachableSHA1InWant)
}

// search finds blobs among all of the tip.
func (b *Branch) search(ctx context.Context, doing string, blobs []Hash) (map[Hash][]byte, error) {
	_, found, err := b.remote.fetchTip(ctx, string(b.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobLimit(MaxContent+1, packp.BlobLimitPrefixNone), limit: noLimit, blobs: MaxContent}, true
	})
	if err != nil {
		return nil, b.remote.failure(ctx, doing, err)
	}
	return found.only(blobs), nil
}

// only returns the contents of some blobs.
func (o objects) only(blobs []Hash) map[Hash][]byte {
	contents := map[Hash][]byte{}
	for hash, content := range o.blobs {
		if slices.Contains(blobs, hash) {
			contents[hash] = content
		}
	}
	return contents
}
