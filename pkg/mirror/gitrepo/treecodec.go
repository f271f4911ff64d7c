// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// hashSize is the length of a SHA-1 hash in bytes.
const hashSize = len(Hash{})

// errMalformedTree is wrapped by the errors of decodeTree. Git would not accept such a tree either.
var errMalformedTree = errors.New("malformed tree object")

// modeText returns a mode as Git writes it: octal, without leading zeros.
func modeText(mode filemode.FileMode) string {
	switch mode {
	case filemode.Regular:
		return "100644"
	case filemode.Dir:
		return "40000"
	case filemode.Executable:
		return "100755"
	default:
		return strconv.FormatUint(uint64(mode), 8)
	}
}

// labelSize returns the length of an encoded entry up to its hash: mode, space, name and a zero byte.
func (e *entry) labelSize() int { return len(modeText(e.mode)) + 1 + len(e.name) + 1 }

func (e *entry) encodedSize() int { return e.labelSize() + hashSize }

func (e *entry) appendTo(encoded []byte) []byte {
	encoded = append(encoded, modeText(e.mode)...)
	encoded = append(encoded, ' ')
	encoded = append(encoded, e.name...)
	encoded = append(encoded, 0)
	return append(encoded, e.hash[:]...)
}

func (d *directory) encodedSize() int {
	size := 0
	for i := range d.entries {
		size += d.entries[i].encodedSize()
	}
	return size
}

// encodeTree returns the content of the directory's tree object.
func encodeTree(d *directory) []byte {
	encoded := make([]byte, 0, d.encodedSize())
	for i := range d.entries {
		encoded = d.entries[i].appendTo(encoded)
	}
	return encoded
}

// treeHash returns the hash of the directory's tree object, whose length is size. It encodes in pieces, because most
// trees are needed only as a hash and a delta.
func treeHash(d *directory, size int) Hash {
	var piece [4 << 10]byte
	digest := newObjectDigest(plumbing.TreeObject, size)
	pending := piece[:0]
	for i := range d.entries {
		e := &d.entries[i]
		if len(pending)+e.encodedSize() > cap(pending) {
			digest.Write(pending)
			pending = piece[:0]
		}
		pending = e.appendTo(pending)
	}
	digest.Write(pending)
	var hash Hash
	digest.Sum(hash[:0])
	return hash
}

// decodeTree parses a tree object. It returns an error for entries that are out of order, duplicate, or have a name that
// no path can have: a search could miss a file, and an edit could write a tree that no server accepts.
func decodeTree(encoded []byte) (*directory, error) {
	count := bytes.Count(encoded, []byte{0}) // At least the number of entries: hashes contain zero bytes, too.
	d := &directory{
		entries: make([]entry, 0, min(count, len(encoded)/(hashSize+len("40000 a\x00"))+1)),
		hash:    objectHash(plumbing.TreeObject, encoded),
	}
	names := string(encoded) // One allocation for all names.
	for offset := 0; offset < len(encoded); {
		e, size, err := decodeEntry(encoded[offset:], names[offset:])
		if err != nil {
			return nil, fmt.Errorf("%w %s at byte %d", err, d.hash, offset)
		}
		if last := len(d.entries) - 1; last >= 0 && compareEntries(&d.entries[last], &e) >= 0 {
			return nil, fmt.Errorf("%w %s: %q is out of order", errMalformedTree, d.hash, e.name)
		}
		d.irregular = d.irregular || size != e.encodedSize()
		d.entries = append(d.entries, e)
		offset += size
	}
	return d, nil
}

// decodeEntry parses the first entry of encoded and returns it with its length; text has the same bytes as encoded.
func decodeEntry(encoded []byte, text string) (entry, int, error) {
	space := bytes.IndexByte(encoded, ' ')
	end := bytes.IndexByte(encoded, 0)
	if space <= 0 || end < space+2 || len(encoded) < end+1+hashSize {
		return entry{}, 0, errMalformedTree
	}
	mode, err := strconv.ParseUint(text[:space], 8, 32)
	if err != nil {
		return entry{}, 0, errMalformedTree
	}
	e := entry{name: text[space+1 : end], mode: filemode.FileMode(mode)}
	if mode == 0 || !isEntryName(e.name) {
		return entry{}, 0, errMalformedTree
	}
	copy(e.hash[:], encoded[end+1:])
	return e, end + 1 + hashSize, nil
}
