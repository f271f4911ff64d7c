// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
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
	// maxContent is the size up to which a wanted blob is kept, maxBase that up to which a blob is read, and maxBases bounds the blobs
	// that are held as bases, in bytes.
	maxContent, maxBase, maxBases int64
	// maxFound ends the search once the blobs that were found take that many bytes together.
	maxFound int64
	// foundSize is the size of the blobs that were found.
	foundSize int64
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
	f := &blobFinder{
		wanted: map[Hash]bool{}, found: map[Hash][]byte{}, places: map[Hash]int64{},
		maxContent: MaxContent, maxBase: maxBaseSize, maxBases: maxBases, maxFound: math.MaxInt64,
	}
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
	if header.Length > f.maxBase {
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
		if content, err = pack.patch(ctx, header, base.content, f.maxBase); content == nil {
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
	if f.wanted[blob.hash] && int64(len(content)) <= f.maxContent {
		if err := f.keep(blob); err != nil {
			return err
		}
	}
	if err := budget.hold(ctx, objectOverhead); err != nil {
		return err
	}
	f.bases.Add(offset, blob)
	f.places[blob.hash] = offset
	f.size += blob.cost()
	for f.size > f.maxBases {
		if _, oldest, evicted := f.bases.RemoveOldest(); evicted {
			budget.release(oldest.cost())
		}
	}
	return nil
}

// errFull is returned once the blobs that were found take as much memory as they may.
var errFull = errors.New("the files are larger than what is read of them at a time")

// keep keeps a wanted blob. It returns errFound if it is the last one.
func (f *blobFinder) keep(blob baseBlob) error {
	if _, again := f.found[blob.hash]; again {
		return nil
	}
	f.found[blob.hash] = blob.content
	f.foundSize += int64(len(blob.content))
	switch {
	case len(f.found) == len(f.wanted):
		return errFound
	case f.foundSize >= f.maxFound:
		return errFull
	}
	return nil
}
