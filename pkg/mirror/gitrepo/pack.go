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
	// minDeltaBase is the size of a tree, in bytes, from which a delta pays off.
	minDeltaBase = 2 << 10
	// maxDeltaDepth bounds the chain of deltas that a reader has to resolve.
	maxDeltaDepth = 40
	// packOverhead bounds what the format adds to an object's uncompressed size: header, base and zlib framing.
	packOverhead = 64

	// maxStored is the size of a delta, in bytes, up to which it is not compressed. A stored block holds less than 64 KiB.
	maxStored = 256

	packCountOffset = 8
)

// pack writes objects in Git's pack format. Each is compressed at once, so no content is kept.
type pack struct {
	buffer   bytes.Buffer
	count    uint32
	deflater *zlib.Writer
	objects  map[Hash]packedObject
	// thin allows deltas against trees that are not in the pack but known to the remote.
	thin bool
	// delta is the buffer of the current delta.
	delta []byte
}

type packedObject struct {
	// offset is where the object begins in the pack, end is where it ends if add has written it.
	offset, end int
	// depth is the number of deltas to resolve before this object.
	depth int
	// start is the tree that the chain of deltas in this pack starts with; nil for other objects.
	start *directory
}

// newPack returns an empty pack. The caller keeps the deflater, which takes hundreds of kilobytes, for the next pack; nil
// allocates a new one.
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

// size returns the number of bytes written so far.
func (p *pack) size() int { return p.buffer.Len() }

// add writes an object unless the pack holds it already.
func (p *pack) add(kind plumbing.ObjectType, hash Hash, content []byte) error {
	if _, written := p.objects[hash]; written {
		return nil
	}
	p.begin(kind, len(content), hash, packedObject{})
	if err := p.deflate(content); err != nil {
		return err
	}
	written := p.objects[hash]
	written.end = p.size()
	p.objects[hash] = written
	return nil
}

// packed returns an object that add has written, as it is in the pack; nil if the pack, which may be nil, does not have it.
func (p *pack) packed(hash Hash) []byte {
	if p == nil || p.objects[hash].end == 0 {
		return nil
	}
	at := p.objects[hash]
	return p.buffer.Bytes()[at.offset:at.end]
}

// addPacked writes an object as packed has returned it, unless the pack holds it already.
func (p *pack) addPacked(hash Hash, packed []byte) {
	if _, written := p.objects[hash]; written {
		return
	}
	p.objects[hash] = packedObject{offset: p.size(), end: p.size() + len(packed)}
	p.count++
	p.buffer.Write(packed)
}

// addTree writes a tree. It is a delta against an earlier version if that is shorter and the base is in this pack or at
// the remote.
func (p *pack) addTree(tree treeObject) error {
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

// deltaBase returns the base of a tree's delta, or nil. It is the previous version, or the start of the chain once the
// chain has its maximum length.
func (p *pack) deltaBase(tree treeObject) *directory {
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
	case p.thin: // A tree that is not in this pack is at the remote, or will be with an earlier pack.
		return before
	}
	return nil
}

// begin writes an object's header: its kind and uncompressed size, four bits in the first byte and seven in each other.
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

// writeDistance writes the distance to the delta's base in Git's offset encoding: seven bits a byte, most significant
// first, and each byte but the last encodes its value minus one.
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

// store writes content as a zlib stream of one stored block: header, block type, length, its complement, content,
// checksum. A small delta is mostly hashes, which do not compress, and building the tables of the compressor would take
// most of the time of a commit.
func (p *pack) store(content []byte) {
	size := uint16(len(content))
	framed := append(p.buffer.AvailableBuffer(), 0x78, 0x01, 0x01)
	framed = binary.LittleEndian.AppendUint16(framed, size)
	framed = binary.LittleEndian.AppendUint16(framed, ^size)
	framed = append(framed, content...)
	framed = binary.BigEndian.AppendUint32(framed, adler32.Checksum(content))
	p.buffer.Write(framed)
}

// finish completes the pack and returns it. Nothing must be added afterwards.
func (p *pack) finish() []byte {
	content := p.buffer.Bytes()
	binary.BigEndian.PutUint32(content[packCountOffset:], p.count)
	sum := sha1.Sum(content) //nolint:gosec // See the import.
	p.buffer.Write(sum[:])
	return p.buffer.Bytes()
}
