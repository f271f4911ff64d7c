// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector needs memory itself, and ten times as long to process gigabytes.

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

// Types of objects in a pack.
const (
	packCommit   = 1
	packTree     = 2
	packBlob     = 3
	packOffDelta = 6
)

// packOf returns a pack with a count of objects in its header, without the checksum at its end.
func packOf(count uint32, objects ...[]byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	return append(pack, bytes.Join(objects, nil)...)
}

// summed appends the checksum to a pack.
func summed(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// packHeader returns the header of an object with the given size.
func packHeader(kind byte, size uint64) []byte {
	next := kind<<4 | byte(size&0x0f)
	var header []byte
	for size >>= 4; size > 0; size >>= 7 {
		header = append(header, next|0x80)
		next = byte(size & 0x7f)
	}
	return append(header, next)
}

// packed returns an object of a pack.
func packed(kind byte, content []byte) []byte {
	return append(packHeader(kind, uint64(len(content))), framed(content)...)
}

// zeros returns an object with a claimed size that inflates to size zero bytes.
func zeros(kind byte, claimed uint64, size int64) []byte {
	return append(packHeader(kind, claimed), deflated(io.LimitReader(zeroReader{}, size))...)
}

type zeroReader struct{}

func (zeroReader) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

// framed returns content as a zlib stream. Small content is not compressed, because starting a compressor takes longer.
func framed(content []byte) []byte {
	if len(content) > 256 {
		return deflated(bytes.NewReader(content))
	}
	stream := binary.LittleEndian.AppendUint16([]byte{0x78, 0x01, 0x01}, uint16(len(content)))
	stream = binary.LittleEndian.AppendUint16(stream, ^uint16(len(content)))
	return binary.BigEndian.AppendUint32(append(stream, content...), adler32.Checksum(content))
}

// deflaters are reused, because creating one takes longer than compressing a small object.
var deflaters = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

func deflated(content io.Reader) []byte {
	var out bytes.Buffer
	writer, _ := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(writer)
	writer.Reset(&out)
	_, _ = io.Copy(writer, content) // Writes to a buffer do not fail.
	_ = writer.Close()
	return out.Bytes()
}

// copying returns a delta that repeats its base of baseSize bytes until the result has targetSize bytes.
func copying(baseSize, targetSize uint64) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, baseSize), targetSize)
	for left := targetSize; left > 0; {
		piece := min(left, baseSize, 1<<24-1)
		delta = append(delta, 0x80|0x70, byte(piece), byte(piece>>8), byte(piece>>16))
		left -= piece
	}
	return delta
}

// delta returns an object that is a delta against the object distance bytes before it.
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

// hashOf returns the hash of an object.
func hashOf(kind string, content []byte) [20]byte {
	return sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
}

// treeOf returns a tree of directories that all refer to the same child.
func treeOf(entries int, child [20]byte) []byte {
	var tree []byte
	for i := range entries {
		tree = fmt.Appendf(tree, "40000 %06d\x00%s", i, child[:])
	}
	return tree
}

// nested returns a pack with a commit of nested trees, each with the given number of entries, and the hash of the commit.
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

// named returns a pack with a commit of nested trees with names of the given length, and the hash of the commit.
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
