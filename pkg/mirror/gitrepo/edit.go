// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// edit builds a changed tree and leaves the original as it is. Directories on the paths of changes are copied once, all
// others are shared.
type edit struct {
	// originals maps each copy to its original; nil for a directory that is new.
	originals map[*directory]*directory
	// changes counts the files that were set or removed.
	changes int
}

func newEdit() *edit { return &edit{originals: map[*directory]*directory{}} }

// own returns the edit's copy of a directory.
func (e *edit) own(d *directory) *directory {
	if _, owned := e.originals[d]; owned {
		return d
	}
	owned := d.clone()
	e.originals[owned] = d
	return owned
}

// set sets the file at the path and returns the directory that replaces d: d itself if the file is unchanged. It
// removes what conflicts: a file on the path where a directory is needed, or a directory at the path.
func (e *edit) set(d *directory, path string, blob Hash) *directory {
	name, rest, nested := strings.Cut(path, "/")
	if !nested {
		return e.setFile(d, name, blob)
	}
	before := d.child(name)
	base := before
	if base == nil {
		base = &directory{}
		e.originals[base] = nil
	}
	after := e.set(base, rest, blob)
	if after == before {
		return d
	}
	return e.setChild(d, name, after)
}

func (e *edit) setFile(d *directory, name string, blob Hash) *directory {
	mode := filemode.Regular
	if old := d.file(name); old != nil && old.isRegularFile() {
		if old.hash == blob {
			return d
		}
		if old.mode == filemode.Executable {
			mode = old.mode
		}
	}
	e.changes++
	d = e.own(d)
	if at, found := d.search(name, true); found {
		d.removeAt(at)
	}
	at, found := d.search(name, false)
	if !found {
		d.insert(at, entry{name: strings.Clone(name)}) // The name is a part of the path, which would be held with it.
	}
	d.entries[at].mode, d.entries[at].hash = mode, blob
	return d
}

func (e *edit) setChild(d *directory, name string, child *directory) *directory {
	d = e.own(d)
	if at, found := d.search(name, false); found {
		d.removeAt(at)
	}
	at, found := d.search(name, true)
	if !found {
		d.insert(at, entry{name: strings.Clone(name), mode: filemode.Dir})
	}
	d.entries[at].directory = child
	return d
}

// remove removes the file at the path, and its directory if that becomes empty. It leaves directories and submodules at
// the path: they are not files.
func (e *edit) remove(d *directory, path string) *directory {
	name, rest, nested := strings.Cut(path, "/")
	if !nested {
		return e.removeFile(d, name)
	}
	before := d.child(name)
	if before == nil {
		return d
	}
	after := e.remove(before, rest)
	if _, changed := e.originals[after]; changed && len(after.entries) == 0 {
		d = e.own(d)
		at, _ := d.search(name, true)
		d.removeAt(at)
		return d
	}
	if after == before {
		return d
	}
	return e.setChild(d, name, after)
}

func (e *edit) removeFile(d *directory, name string) *directory {
	old := d.file(name)
	if old == nil || old.mode == filemode.Submodule {
		return d
	}
	e.changes++
	d = e.own(d)
	at, _ := d.search(name, false)
	d.removeAt(at)
	return d
}

// treeObject is a new tree object.
type treeObject struct {
	directory *directory
	// original is the directory's version before the edit, or nil.
	original *directory
	// size is the length of the directory's encoding.
	size int
}

// hashTrees computes the hash of every directory of the edit below d and returns the new ones, children before parents.
// They must not change afterwards.
func (e *edit) hashTrees(d *directory) []treeObject {
	original, owned := e.originals[d]
	if !owned {
		return nil
	}
	var trees []treeObject
	for i := range d.entries {
		if child := d.entries[i].directory; child != nil {
			trees = append(trees, e.hashTrees(child)...)
			d.entries[i].hash = child.hash
		}
	}
	size := d.encodedSize()
	d.hash = treeHash(d, size)
	if original != nil && original.hash == d.hash {
		return nil // Everything below is unchanged, too.
	}
	return append(trees, treeObject{directory: d, original: original, size: size})
}
