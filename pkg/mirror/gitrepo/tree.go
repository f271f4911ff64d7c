// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import "strings"

// Tree is an immutable view of a branch's files. It is safe for concurrent use.
//
// It shows regular files only. Symbolic links and submodules are never managed, and directories outside the managed
// folders are not held in memory.
type Tree struct {
	root *directory
}

// Lookup returns the blob hash of the regular file at the path.
func (t *Tree) Lookup(path string) (Hash, bool) {
	folder, name := splitPath(path)
	directory := t.root.descend(folder)
	if directory == nil {
		return Hash{}, false
	}
	e := directory.file(name)
	if e == nil || !e.isRegularFile() {
		return Hash{}, false
	}
	return e.hash, true
}

// Walk calls visit for every regular file below the folder, in bytewise order of full paths. "" is the whole tree; a
// folder that does not exist is empty. It stops at visit's first error and returns it.
func (t *Tree) Walk(folder string, visit func(path string, hash Hash) error) error {
	folder = strings.Trim(folder, "/")
	directory := t.root.descend(folder)
	if directory == nil {
		return nil
	}
	if folder != "" {
		folder += "/"
	}
	return directory.walk(folder, visit)
}

// Obstacle returns the part of a managed folder's path that is a file, a symbolic link or a submodule on the branch,
// which a file in the folder would replace. It returns an empty string if there is none.
func (t *Tree) Obstacle(folder string) string {
	at, path := t.root, ""
	for name := range strings.SplitSeq(strings.Trim(folder, "/"), "/") {
		path = strings.TrimPrefix(path+"/"+name, "/")
		if at.file(name) != nil {
			return path
		}
		if at = at.child(name); at == nil {
			break
		}
	}
	return ""
}

// FolderHash returns the hash of a folder's tree object, and whether the folder exists. "" is the whole tree.
func (t *Tree) FolderHash(folder string) (Hash, bool) {
	directory := t.root.descend(strings.Trim(folder, "/"))
	if directory == nil {
		return Hash{}, false
	}
	return directory.hash, true
}

func (d *directory) walk(prefix string, visit func(string, Hash) error) error {
	for i := range d.entries {
		e := &d.entries[i]
		var err error
		switch {
		case e.directory != nil:
			err = e.directory.walk(prefix+e.name+"/", visit)
		case e.isRegularFile():
			err = visit(prefix+e.name, e.hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// splitPath splits a path at its last slash.
func splitPath(path string) (folder, name string) {
	cut := strings.LastIndexByte(path, '/')
	if cut < 0 {
		return "", path
	}
	return path[:cut], path[cut+1:]
}
