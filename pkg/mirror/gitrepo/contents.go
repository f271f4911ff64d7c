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

// Contents returns the contents of files by blob hash. The blobs must be in the branch as it was last read. It is for a
// few small files: the result omits files larger than MaxContent and those that the server does not send. If the server
// does not serve single blobs, Contents reads a pack of all blobs, without keeping it, until it has found the files.
func (b *Branch) Contents(ctx context.Context, blobs ...Hash) (map[Hash][]byte, error) {
	const op = "read files"
	if len(blobs) == 0 {
		return map[Hash][]byte{}, nil
	}
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	found, err := b.fetchBlobs(ctx, budget, blobs)
	if err == nil && found == nil {
		found, err = b.scanPack(ctx, budget, blobs)
	}
	if err != nil {
		return nil, b.remote.failure(ctx, op, err)
	}
	return found, nil
}

// fetchBlobs fetches the blobs by hash. It returns nil if the server serves only the tips of references, or only commits.
func (b *Branch) fetchBlobs(ctx context.Context, budget *budget, blobs []Hash) (map[Hash][]byte, error) {
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
		return nil, nil // Servers refuse this in different ways. scanPack returns any other error.
	}
	return finder.found, nil
}

// scanPack finds the blobs in a pack of all blobs of the tip.
func (b *Branch) scanPack(ctx context.Context, budget *budget, blobs []Hash) (map[Hash][]byte, error) {
	finder, err := newBlobFinder(blobs)
	if err != nil {
		return nil, err
	}
	_, err = b.remote.fetchTip(ctx, budget, string(b.reference), func(Hash) (want, bool) {
		return want{depth: 1, filter: packp.FilterBlobLimit(MaxContent+1, packp.BlobLimitPrefixNone), visitor: finder}, true
	})
	return finder.found, err
}
