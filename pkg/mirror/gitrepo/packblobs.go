// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"math"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxBaseSize is the size of a blob, in bytes, up to which it is read: a small file may be stored as a delta against a
	// larger one.
	maxBaseSize = 4 * MaxContent
	// maxBases bounds the blobs that are held as bases of later deltas, in bytes. Git writes the deltas against an object
	// close behind it.
	maxBases = 16 << 20
)

// blobFinder finds a few blobs in a pack of any size. It holds the wanted ones and the most recently used bases.
type blobFinder struct {
	wanted map[Hash]bool
	found  map[Hash][]byte
	// bases has the possible bases of later deltas by offset in the pack; places has their offsets by hash.
	bases  *simplelru.LRU[int64, baseBlob]
	places map[Hash]int64
	size   int64
}

type baseBlob struct {
	hash    Hash
	content []byte
}

var _ packVisitor = &blobFinder{}

func newBlobFinder(wanted []Hash) (*blobFinder, error) {
	f := &blobFinder{wanted: map[Hash]bool{}, found: map[Hash][]byte{}, places: map[Hash]int64{}}
	for _, hash := range wanted {
		f.wanted[hash] = true
	}
	var err error
	f.bases, err = simplelru.NewLRU(math.MaxInt, func(offset int64, evicted baseBlob) {
		f.size -= evicted.cost()
		if f.places[evicted.hash] == offset {
			delete(f.places, evicted.hash)
		}
	})
	return f, err
}

func (b baseBlob) cost() int64 { return int64(len(b.content)) + objectOverhead }

func (f *blobFinder) visit(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error {
	if header.Length > maxBaseSize {
		return pack.skip(header)
	}
	var content []byte
	var err error
	switch header.Type {
	case plumbing.BlobObject:
		content, err = pack.inflate(ctx, header)
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		base, found := f.base(header)
		if !found {
			return pack.skip(header)
		}
		if content, err = pack.patch(ctx, header, base.content, maxBaseSize); content == nil {
			return err
		}
	default:
		return pack.skip(header)
	}
	if err != nil {
		return err
	}
	return f.add(ctx, pack.budget, header.Offset, content)
}

func (f *blobFinder) base(header *packfile.ObjectHeader) (baseBlob, bool) {
	offset := header.OffsetReference
	if header.Type == plumbing.REFDeltaObject {
		var known bool
		if offset, known = f.places[header.Reference]; !known {
			return baseBlob{}, false
		}
	}
	return f.bases.Get(offset)
}

// add records a blob whose content the budget holds already.
func (f *blobFinder) add(ctx context.Context, budget *budget, offset int64, content []byte) error {
	blob := baseBlob{hash: BlobHash(content), content: content}
	if f.wanted[blob.hash] && len(content) <= MaxContent {
		f.found[blob.hash] = content
		if len(f.found) == len(f.wanted) {
			return errFound
		}
	}
	if err := budget.hold(ctx, objectOverhead); err != nil {
		return err
	}
	f.bases.Add(offset, blob)
	f.places[blob.hash] = offset
	f.size += blob.cost()
	for f.size > maxBases {
		if _, oldest, evicted := f.bases.RemoveOldest(); evicted {
			budget.release(oldest.cost())
		}
	}
	return nil
}
