// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector takes memory of its own, and ten times as long for gigabytes.

//go:build !race

package gitrepo_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"strings"
	"sync"
)

// The kinds of objects in a pack.
const (
	packCommit   = 1
	packTree     = 2
	packBlob     = 3
	packOffDelta = 6
)

// packOf returns the beginning of a pack that claims to hold so many objects, without the sum at its end.
func packOf(count uint32, objects ...[]byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	return append(pack, bytes.Join(objects, nil)...)
}

// summed completes a pack.
func summed(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// packHeader is the header of an object that claims to have a size.
func packHeader(kind byte, size uint64) []byte {
	next := kind<<4 | byte(size&0x0f)
	var header []byte
	for size >>= 4; size > 0; size >>= 7 {
		header = append(header, next|0x80)
		next = byte(size & 0x7f)
	}
	return append(header, next)
}

// packed is an object of a pack.
func packed(kind byte, content []byte) []byte {
	return append(packHeader(kind, uint64(len(content))), framed(content)...)
}

// zeros is an object that claims a size and inflates to so many zero bytes.
func zeros(kind byte, claimed uint64, size int64) []byte {
	return append(packHeader(kind, claimed), deflated(io.LimitReader(zeroReader{}, size))...)
}

type zeroReader struct{}

func (zeroReader) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

// framed is content as a zlib stream, not compressed if it is small: a compressor takes longer to start than that is worth.
func framed(content []byte) []byte {
	if len(content) > 256 {
		return deflated(bytes.NewReader(content))
	}
	stream := binary.LittleEndian.AppendUint16([]byte{0x78, 0x01, 0x01}, uint16(len(content)))
	stream = binary.LittleEndian.AppendUint16(stream, ^uint16(len(content)))
	return binary.BigEndian.AppendUint32(append(stream, content...), adler32.Checksum(content))
}

// deflaters are kept, because making one takes longer than compressing something small.
var deflaters = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

func deflated(content io.Reader) []byte {
	var out bytes.Buffer
	writer, _ := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(writer)
	writer.Reset(&out)
	_, _ = io.Copy(writer, content) // A buffer takes everything.
	_ = writer.Close()
	return out.Bytes()
}

// copying is a delta that copies its base, of baseSize bytes, again and again until the result is targetSize bytes long.
func copying(baseSize, targetSize uint64) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, baseSize), targetSize)
	for left := targetSize; left > 0; {
		piece := min(left, baseSize, 1<<24-1)
		delta = append(delta, 0x80|0x70, byte(piece), byte(piece>>8), byte(piece>>16))
		left -= piece
	}
	return delta
}

// delta is an object that is a delta against what is distance bytes before it.
func delta(distance int, content []byte) []byte {
	object := packHeader(packOffDelta, uint64(len(content)))
	var encoded []byte
	encoded = append(encoded, byte(distance&0x7f))
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		encoded = append([]byte{0x80 | byte(distance&0x7f)}, encoded...)
	}
	return append(append(object, encoded...), framed(content)...)
}

// hashOf is the hash of an object.
func hashOf(kind string, content []byte) [20]byte {
	return sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
}

// treeOf is a tree of so many directories, all of which are the same tree.
func treeOf(entries int, child [20]byte) []byte {
	var tree []byte
	for i := range entries {
		tree = fmt.Appendf(tree, "40000 %06d\x00%s", i, child[:])
	}
	return tree
}

// nested is a pack of trees in each other, each with so many entries, and the commit that they are of. Its hash is the tip.
func nested(levels, entries int) ([]byte, [20]byte) {
	leaf := []byte("100644 file\x00" + strings.Repeat("x", 20))
	objects, child := [][]byte{packed(packTree, leaf)}, hashOf("tree", leaf)
	for range levels {
		tree := treeOf(entries, child)
		objects, child = append(objects, packed(packTree, tree)), hashOf("tree", tree)
	}
	commit := fmt.Appendf(nil, "tree %x\n\n", child)
	objects = append(objects, packed(packCommit, commit))
	return summed(packOf(uint32(len(objects)), objects...)), hashOf("commit", commit)
}

// named is a pack of trees in each other whose names are so long, and the hash of the commit that they are of.
func named(levels, length int) ([]byte, [20]byte) {
	leaf := []byte("100644 file\x00" + strings.Repeat("x", 20))
	objects, child := [][]byte{packed(packTree, leaf)}, hashOf("tree", leaf)
	for range levels {
		tree := fmt.Appendf(nil, "40000 %s\x00%s", strings.Repeat("n", length), child[:])
		objects, child = append(objects, packed(packTree, tree)), hashOf("tree", tree)
	}
	commit := fmt.Appendf(nil, "tree %x\n\n", child)
	objects = append(objects, packed(packCommit, commit))
	return summed(packOf(uint32(len(objects)), objects...)), hashOf("commit", commit)
}
