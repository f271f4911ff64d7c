// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // The pack format ends in a SHA-1 sum.
	"encoding/binary"
	"fmt"
	"hash/adler32"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// minDeltaBase is the size in bytes from which a tree is worth a delta.
	minDeltaBase = 2 << 10
	// maxDeltaDepth bounds the chain of deltas that a reader has to resolve.
	maxDeltaDepth = 40
	// packOverhead is more than the format adds to one object's uncompressed size: header, base and zlib framing.
	packOverhead = 64

	// maxStored is the size in bytes up to which a delta is not compressed; a stored block holds less than 64 KiB.
	maxStored = 256

	packCountOffset = 8
)

// pack writes objects in Git's pack format. Each is compressed as it comes, so no content is kept.
type pack struct {
	buffer   bytes.Buffer
	count    uint32
	deflater *zlib.Writer
	objects  map[Hash]packedObject
	// thin allows deltas against trees that are not in the pack but known to the remote.
	thin bool
	// delta is room for one delta at a time.
	delta []byte
}

type packedObject struct {
	offset int
	// depth is the number of deltas to resolve before this object.
	depth int
	// start is the tree that the chain of deltas began with when it was first written to this pack; nil for other objects.
	start *directory
}

// newPack starts a pack. The deflater is kept by the caller, for it holds hundreds of kilobytes; nil makes a new one.
func newPack(deflater *zlib.Writer, thin bool) (*pack, error) {
	p := &pack{deflater: deflater, thin: thin, objects: map[Hash]packedObject{}}
	if deflater == nil {
		var err error
		if p.deflater, err = zlib.NewWriterLevel(&p.buffer, zlib.BestSpeed); err != nil {
			return nil, fmt.Errorf("start a pack: %w", err)
		}
	}
	p.buffer.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	return p, nil
}

// size is the number of bytes written so far.
func (p *pack) size() int { return p.buffer.Len() }

// add writes an object unless the pack holds it already.
func (p *pack) add(kind plumbing.ObjectType, hash Hash, content []byte) error {
	if _, written := p.objects[hash]; written {
		return nil
	}
	p.begin(kind, len(content), hash, packedObject{})
	return p.deflate(content)
}

// addTree writes a tree, as a delta against an earlier version where that is shorter and a reader can find it: in this
// pack, or at the remote.
func (p *pack) addTree(tree sealedTree) error {
	hash := tree.directory.hash
	if _, written := p.objects[hash]; written {
		return nil
	}
	base := p.deltaBase(tree)
	if base == nil {
		return p.addWholeTree(tree.directory)
	}
	delta := appendTreeDelta(p.delta[:0], base, tree.directory)
	if p.delta = delta; len(delta) > tree.size/2 {
		return p.addWholeTree(tree.directory)
	}
	if at, inPack := p.objects[base.hash]; inPack {
		distance := p.size() - at.offset
		p.begin(plumbing.OFSDeltaObject, len(delta), hash, packedObject{depth: at.depth + 1, start: at.start})
		p.writeDistance(distance)
	} else {
		p.begin(plumbing.REFDeltaObject, len(delta), hash, packedObject{depth: 1, start: tree.directory})
		p.buffer.Write(base.hash[:])
	}
	if len(delta) <= maxStored {
		p.store(delta)
		return nil
	}
	return p.deflate(delta)
}

func (p *pack) addWholeTree(d *directory) error {
	encoded := encodeTree(d)
	p.begin(plumbing.TreeObject, len(encoded), d.hash, packedObject{start: d})
	return p.deflate(encoded)
}

// deltaBase returns the version of a tree that a delta can be made against, or nil. It is the one before, or the one
// that the chain began with once the chain is as long as can be.
func (p *pack) deltaBase(tree sealedTree) *directory {
	before := tree.original
	if tree.size < minDeltaBase || before == nil || before.irregular || before.hash.IsZero() {
		return nil
	}
	at, inPack := p.objects[before.hash]
	switch {
	case inPack && at.depth < maxDeltaDepth:
		return before
	case inPack:
		return at.start
	case p.thin: // What was not written here was read from the remote or goes there in an earlier pack.
		return before
	}
	return nil
}

// begin writes an object's header: kind and uncompressed size, four bits of it and then seven a byte.
func (p *pack) begin(kind plumbing.ObjectType, size int, hash Hash, object packedObject) {
	object.offset = p.size()
	p.objects[hash] = object
	p.count++
	next := byte(kind)<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		p.buffer.WriteByte(next | 0x80)
		next = byte(size & 0x7f)
	}
	p.buffer.WriteByte(next)
}

// writeDistance writes how far back the delta's base is: seven bits a byte, most significant first, each byte but the
// last standing for one more than it says.
func (p *pack) writeDistance(distance int) {
	var encoded [10]byte
	at := len(encoded) - 1
	encoded[at] = byte(distance & 0x7f)
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		at--
		encoded[at] = 0x80 | byte(distance&0x7f)
	}
	p.buffer.Write(encoded[at:])
}

func (p *pack) deflate(content []byte) error {
	p.deflater.Reset(&p.buffer)
	if _, err := p.deflater.Write(content); err != nil {
		return fmt.Errorf("compress an object: %w", err)
	}
	if err := p.deflater.Close(); err != nil {
		return fmt.Errorf("compress an object: %w", err)
	}
	return nil
}

// store writes content as a zlib stream of one uncompressed block: header, last block, its length and the complement of
// that, content, sum. A small delta is hashes for the most part, which do not get shorter; making tables for them would
// take most of the time that a commit takes.
func (p *pack) store(content []byte) {
	size := uint16(len(content))
	framed := append(p.buffer.AvailableBuffer(), 0x78, 0x01, 0x01)
	framed = binary.LittleEndian.AppendUint16(framed, size)
	framed = binary.LittleEndian.AppendUint16(framed, ^size)
	framed = append(framed, content...)
	framed = binary.BigEndian.AppendUint32(framed, adler32.Checksum(content))
	p.buffer.Write(framed)
}

// finish completes the pack and returns it. Nothing may be added afterwards.
func (p *pack) finish() []byte {
	content := p.buffer.Bytes()
	binary.BigEndian.PutUint32(content[packCountOffset:], p.count)
	sum := sha1.Sum(content) //nolint:gosec // See the import.
	p.buffer.Write(sum[:])
	return p.buffer.Bytes()
}
