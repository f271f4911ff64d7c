// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"fmt"
)

const (
	// maxEntries and maxDepth bound a tree that is expanded in memory: a few small objects can stand for billions of
	// paths.
	maxEntries = 8 << 20
	maxDepth   = 512
)

// errIncomplete says that a tree is not among the objects at hand.
var errIncomplete = errors.New("a tree object is missing")

// treeLoader expands trees within the managed folders.
type treeLoader struct {
	fetched objects
	folders folders
	// known finds the directories of an earlier tree by hash, for those that the server knows we have.
	known   map[Hash]*directory
	entries int
}

// loadCommit returns the root directory of a commit. Directories that are where they were in before are shared with it;
// before may be nil.
func loadCommit(commit Hash, fetched objects, folders folders, before *directory) (*directory, error) {
	content, found := fetched.commits[commit]
	if !found {
		return nil, fmt.Errorf("%w: commit %s", errIncomplete, commit)
	}
	links, err := decodeCommit(content)
	if err != nil {
		return nil, refuse(Protocol, "%v", err)
	}
	loader := treeLoader{fetched: fetched, folders: folders, known: map[Hash]*directory{}}
	loader.remember(before)
	return loader.load(links.tree, "", before, 0)
}

func (l *treeLoader) remember(d *directory) {
	if d == nil {
		return
	}
	if !d.irregular {
		l.known[d.hash] = d
	}
	for i := range d.entries {
		l.remember(d.entries[i].directory)
	}
}

// load expands one directory; its path is empty or ends in a slash.
func (l *treeLoader) load(hash Hash, path string, before *directory, depth int) (*directory, error) {
	if before != nil && before.hash == hash {
		return before, nil
	}
	encoded, err := l.content(hash)
	if err != nil {
		return nil, err
	}
	d, err := decodeTree(encoded)
	if err != nil {
		return nil, refuse(Protocol, "the repository is damaged: %v", err)
	}
	if l.entries += len(d.entries); l.entries > maxEntries || depth > maxDepth {
		return nil, refuse(Protocol, "the branch has more than %d files or %d levels of directories", maxEntries, maxDepth)
	}
	for i := range d.entries {
		e := &d.entries[i]
		childPath := path + e.name + "/"
		if !e.isDirectory() || !l.folders.reach(childPath) {
			continue
		}
		var childBefore *directory
		if before != nil {
			childBefore = before.child(e.name)
		}
		if e.directory, err = l.load(e.hash, childPath, childBefore, depth+1); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (l *treeLoader) content(hash Hash) ([]byte, error) {
	if encoded, found := l.fetched.trees[hash]; found {
		return encoded, nil
	}
	if d, found := l.known[hash]; found {
		return encodeTree(d), nil
	}
	return nil, fmt.Errorf("%w: %s", errIncomplete, hash)
}
