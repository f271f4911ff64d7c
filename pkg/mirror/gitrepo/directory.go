// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// entry is one entry of a directory.
type entry struct {
	name string
	hash Hash
	mode filemode.FileMode
	// directory is set for a directory that is held in memory; one outside the managed folders is known by its hash only.
	directory *directory
}

// directory is one Git tree. It is immutable once its edit is hashed, so trees can share directories.
type directory struct {
	// entries are in Git's order, in which a directory sorts as if its name ended in a slash.
	entries []entry
	hash    Hash
	// irregular is set if encodeTree does not reproduce the object with this hash (old tools write zero-padded modes). Such
	// an object is not used as the base of a delta.
	irregular bool
	// cost is the memory that the directory and those below it take, in bytes, as far as they were read.
	cost int64
}

func (e *entry) isDirectory() bool { return e.mode == filemode.Dir }

func (e *entry) isRegularFile() bool {
	return e.mode == filemode.Regular || e.mode == filemode.Executable || e.mode == filemode.Deprecated
}

// same reports whether two entries have the same encoding.
func (e *entry) same(other *entry) bool {
	return e.hash == other.hash && e.mode == other.mode && e.name == other.name
}

// compareNames compares names in Git's order of entries.
func compareNames(a string, aIsDirectory bool, b string, bIsDirectory bool) int {
	common := min(len(a), len(b))
	if order := strings.Compare(a[:common], b[:common]); order != 0 {
		return order
	}
	return cmp.Compare(byteAfter(a, common, aIsDirectory), byteAfter(b, common, bIsDirectory))
}

func byteAfter(name string, at int, isDirectory bool) byte {
	switch {
	case at < len(name):
		return name[at]
	case isDirectory:
		return '/'
	default:
		return 0
	}
}

func compareEntries(a, b *entry) int {
	return compareNames(a.name, a.isDirectory(), b.name, b.isDirectory())
}

// search returns the index of the entry, or the index at which to insert it.
func (d *directory) search(name string, isDirectory bool) (int, bool) {
	at := sort.Search(len(d.entries), func(i int) bool {
		e := &d.entries[i]
		return compareNames(e.name, e.isDirectory(), name, isDirectory) >= 0
	})
	return at, at < len(d.entries) && d.entries[at].name == name && d.entries[at].isDirectory() == isDirectory
}

// file returns the entry with the name that is not a directory, or nil.
func (d *directory) file(name string) *entry {
	if at, found := d.search(name, false); found {
		return &d.entries[at]
	}
	return nil
}

// child returns the directory with the name if it is held in memory, or nil.
func (d *directory) child(name string) *directory {
	if at, found := d.search(name, true); found {
		return d.entries[at].directory
	}
	return nil
}

// descend returns the directory at the path, or nil. The empty path is the directory itself.
func (d *directory) descend(path string) *directory {
	for path != "" && d != nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		d = d.child(name)
	}
	return d
}

// clone returns a copy of one level with room for one more entry, because most edits add at most one.
func (d *directory) clone() *directory {
	entries := make([]entry, len(d.entries), len(d.entries)+1)
	copy(entries, d.entries)
	return &directory{entries: entries, cost: d.cost}
}

func (d *directory) insert(at int, e entry) { d.entries = slices.Insert(d.entries, at, e) }

func (d *directory) removeAt(at int) { d.entries = slices.Delete(d.entries, at, at+1) }
