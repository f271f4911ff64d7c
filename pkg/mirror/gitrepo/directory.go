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

// entry is one line of a directory.
type entry struct {
	name string
	hash Hash
	mode filemode.FileMode
	// directory is set for a directory that is held in memory; one outside the managed folders is known by its hash only.
	directory *directory
}

// directory is one Git tree. It does not change once the edit that made it is sealed, so trees share directories freely.
type directory struct {
	// entries are in Git's order, in which a directory sorts as if its name ended in a slash.
	entries []entry
	hash    Hash
	// irregular says that the bytes behind hash are not those that encodeTree makes of the entries (zero-padded modes of
	// old tools), so that no delta may be based on them.
	irregular bool
	// cost is how much memory the directory and those below it take, in bytes, as far as they were read.
	cost int64
}

func (e *entry) isDirectory() bool { return e.mode == filemode.Dir }

func (e *entry) isRegularFile() bool {
	return e.mode == filemode.Regular || e.mode == filemode.Executable || e.mode == filemode.Deprecated
}

// same tells whether two entries are encoded alike.
func (e *entry) same(other *entry) bool {
	return e.hash == other.hash && e.mode == other.mode && e.name == other.name
}

// compareNames is Git's order of entries.
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

// search returns where the entry is, or where it belongs.
func (d *directory) search(name string, isDirectory bool) (int, bool) {
	at := sort.Search(len(d.entries), func(i int) bool {
		e := &d.entries[i]
		return compareNames(e.name, e.isDirectory(), name, isDirectory) >= 0
	})
	return at, at < len(d.entries) && d.entries[at].name == name && d.entries[at].isDirectory() == isDirectory
}

// file returns the entry of that name that is no directory, or nil.
func (d *directory) file(name string) *entry {
	if at, found := d.search(name, false); found {
		return &d.entries[at]
	}
	return nil
}

// child returns the directory of that name as far as it is held in memory, or nil.
func (d *directory) child(name string) *directory {
	if at, found := d.search(name, true); found {
		return d.entries[at].directory
	}
	return nil
}

// descend returns the directory at the path, or nil; the empty path is the directory itself.
func (d *directory) descend(path string) *directory {
	for path != "" && d != nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		d = d.child(name)
	}
	return d
}

// clone copies one level with room for one more entry, because most edits add one at most.
func (d *directory) clone() *directory {
	entries := make([]entry, len(d.entries), len(d.entries)+1)
	copy(entries, d.entries)
	return &directory{entries: entries, cost: d.cost}
}

func (d *directory) insert(at int, e entry) { d.entries = slices.Insert(d.entries, at, e) }

func (d *directory) removeAt(at int) { d.entries = slices.Delete(d.entries, at, at+1) }
