// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// BlobsOptions say where the blobs are, for servers that do not serve single ones.
type BlobsOptions struct {
	Past
	// Parent is set if the first parent of the commit has some of the blobs.
	Parent bool
	// Whole is set if Behind is not known: then the whole history of the branch is searched as the last resort, up to Limits.PastFiles.
	Whole bool
}

// Blobs are the contents of blobs by hash.
type Blobs struct {
	Found map[Hash][]byte
	// More is set if the contents together are larger than one call returns. The caller asks again for the blobs that were not
	// found.
	More bool
}

// Blobs returns the contents of blobs. It omits blobs that are larger than MaxBlob and, unless Blobs.More is set, those that the
// server does not send. If the server does not serve single blobs, the blobs of the commit are read, without keeping them, until all
// are found; if it does not serve past commits either, those of all commits since then.
func (r *Remote) Blobs(ctx context.Context, options BlobsOptions, blobs ...Hash) (Blobs, error) {
	const op = "read files"
	reference, err := referenceOf(options.Branch, op)
	if err != nil {
		return Blobs{}, err
	}
	if len(blobs) == 0 {
		return Blobs{Found: map[Hash][]byte{}}, nil
	}
	ctx, budget := r.begin(ctx)
	defer budget.end()
	var result Blobs
	for _, attempt := range []func(*blobFinder) (bool, error){
		func(f *blobFinder) (bool, error) { return r.fetchBlobs(ctx, budget, blobs, f) },
		func(f *blobFinder) (bool, error) {
			depth := 1
			if options.Parent {
				depth = 2
			}
			single, err := r.fetchCommit(ctx, budget, reference, options.Past, depth, f.scanning)
			return single.done, err
		},
		func(f *blobFinder) (bool, error) {
			_, err := r.fetchTip(ctx, budget, string(reference), func(Hash) (want, bool) {
				wanted := want{limit: budget.limits.PastFiles}
				if !options.Whole {
					wanted.depth = options.Behind + 2
				}
				f.scanning(&wanted)
				return wanted, true
			})
			if errors.Is(err, errTooLarge) {
				err = tooLarge("the server serves neither files nor past commits by hash (uploadpack.allowReachableSHA1InWant), and sends more "+
					"than %s of its history", sizeText(budget.limits.PastFiles))
			}
			return true, err
		},
	} {
		finder, err := newPastFinder(blobs, budget)
		if err != nil {
			return Blobs{}, err
		}
		done, err := attempt(finder)
		if errors.Is(err, errFull) {
			return Blobs{Found: finder.found, More: true}, nil
		}
		if err != nil {
			return Blobs{}, r.failure(ctx, op, err)
		}
		budget.release(budget.held)
		if result.Found = finder.found; done {
			break
		}
	}
	return result, nil
}

// scanning makes a want scan a pack for the blobs.
func (f *blobFinder) scanning(wanted *want) {
	wanted.filter, wanted.visitor = packp.FilterBlobLimit(uint64(f.maxContent)+1, packp.BlobLimitPrefixNone), f
}

// newPastFinder returns a finder for blobs up to MaxBlob. It takes half of the memory of the budget at most.
func newPastFinder(blobs []Hash, budget *budget) (*blobFinder, error) {
	f, err := newBlobFinder(blobs)
	if err == nil {
		memory := min(maxBlobs, budget.limits.Memory/4)
		f.maxContent, f.maxBase, f.maxBases, f.maxFound = MaxBlob, MaxBlob, memory, memory
	}
	return f, err
}

// fetchBlobs fetches the blobs by hash. It returns false if the server serves only the tips of references, or only commits.
func (r *Remote) fetchBlobs(ctx context.Context, budget *budget, blobs []Hash, finder *blobFinder) (bool, error) {
	session, err := r.open(ctx, uploadPack, budget)
	if err != nil {
		return false, err
	}
	defer session.close()
	advertised, err := session.advertisement(ctx, "")
	if err != nil || !advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		return false, err
	}
	err = fetch(ctx, session, budget, advertised.Capabilities, Hash{}, want{objects: blobs, visitor: finder})
	if errors.Is(err, errFull) {
		return true, err
	}
	return err == nil, nil // Servers refuse this in different ways. The next attempt returns any other error.
}
