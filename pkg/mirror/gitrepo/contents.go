// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"
)

// MaxContent is the size, in bytes, up to which Contents returns a file.
const MaxContent = 16 << 10

// Contents returns the contents of files by blob hash. The blobs must be in the branch or its base as they were last read. It is for a
// few small files: the result omits files larger than MaxContent and those that the server does not send. If the server
// does not serve single blobs, Contents reads a pack of all blobs, without keeping it, until it has found the files.
func (b *Branch) Contents(ctx context.Context, blobs ...Hash) (map[Hash][]byte, error) {
	const op = "read files"
	if len(blobs) == 0 {
		return map[Hash][]byte{}, nil
	}
	ctx, budget := b.remote.begin(ctx)
	defer budget.end()
	finder, err := newBlobFinder(blobs)
	if err != nil {
		return nil, b.remote.failure(ctx, op, err)
	}
	served, err := b.remote.fetchBlobs(ctx, budget, blobs, finder)
	if err == nil && !served {
		finder, err = b.scanPack(ctx, budget, b.source(), blobs)
		if err == nil && b.base != nil && len(finder.found) < len(blobs) {
			inBranch := finder.found
			if finder, err = b.scanPack(ctx, budget, b.base.reference, blobs); err == nil {
				maps.Copy(finder.found, inBranch)
			}
		}
	}
	if err != nil {
		return nil, b.remote.failure(ctx, op, err)
	}
	return finder.found, nil
}

// scanPack finds the blobs in a pack of all blobs of the tip of a reference.
func (b *Branch) scanPack(ctx context.Context, budget *budget, of plumbing.ReferenceName, blobs []Hash) (*blobFinder, error) {
	finder, err := newBlobFinder(blobs)
	if err != nil {
		return nil, err
	}
	_, err = b.remote.fetchTip(ctx, budget, string(of), func(Hash) (want, bool) {
		wanted := want{depth: 1}
		finder.scanning(&wanted)
		return wanted, true
	})
	return finder, err
}
