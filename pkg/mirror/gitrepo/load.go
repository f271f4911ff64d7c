// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
)

const (
	// maxDepth bounds how deep directories are nested.
	maxDepth = 512
	// maxPath bounds the path of a directory, in bytes. It is the limit of Linux for the path of a file.
	maxPath = 4096
	// expandedSize is the largest ratio of the memory that a decoded tree takes to the size of its object: the names, and
	// for each entry twice the size of the shortest.
	expandedSize = 3
)

// errIncomplete is returned if a tree is not among the fetched or known objects.
var errIncomplete = errors.New("a tree object is missing")

// treeLoader expands trees within the managed folders.
type treeLoader struct {
	fetched objects
	folders folders
	// known has the directories of the previous tree by hash: the server omits those, because it knows that we have them.
	known  map[Hash]*directory
	budget *budget
}

// loadCommit returns the root directory of a commit. Directories that are where they were in before are shared with it;
// before may be nil.
func loadCommit(ctx context.Context, budget *budget, commit Hash, fetched objects, folders folders, before *directory) (*directory, error) {
	content, found := fetched.commits[commit]
	if !found {
		return nil, fmt.Errorf("%w: commit %s", errIncomplete, commit)
	}
	links, err := decodeCommit(content)
	if err != nil {
		return nil, refuse(Protocol, "%v", err)
	}
	loader := treeLoader{fetched: fetched, folders: folders, known: map[Hash]*directory{}, budget: budget}
	loader.index(before)
	return loader.load(ctx, links.tree, "", before, 0)
}

func (l *treeLoader) index(d *directory) {
	if d == nil {
		return
	}
	if !d.irregular {
		l.known[d.hash] = d
	}
	for i := range d.entries {
		l.index(d.entries[i].directory)
	}
}

// load expands one directory; its path is empty or ends in a slash. The budget counts a directory each time it is
// referenced: a few small objects can describe billions of paths.
func (l *treeLoader) load(ctx context.Context, hash Hash, path string, before *directory, depth int) (*directory, error) {
	if before != nil && before.hash == hash {
		return before, l.budget.hold(ctx, before.cost)
	}
	encoded, err := l.content(hash)
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, refuse(Protocol, "the branch has more than %d levels of directories", maxDepth)
	}
	cost := expandedSize*int64(len(encoded)) + objectOverhead
	if err := l.budget.hold(ctx, cost); err != nil {
		return nil, err
	}
	d, err := decodeTree(encoded)
	if err != nil {
		return nil, refuse(Protocol, "the repository is damaged: %v", err)
	}
	d.cost = cost
	for i := range d.entries {
		e := &d.entries[i]
		childPath := path + e.name + "/"
		if !e.isDirectory() || !l.folders.reach(childPath) {
			continue
		}
		if len(childPath) > maxPath {
			return nil, refuse(Protocol, "the branch has a directory whose path is longer than %d bytes", maxPath)
		}
		var childBefore *directory
		if before != nil {
			childBefore = before.child(e.name)
		}
		if e.directory, err = l.load(ctx, e.hash, childPath, childBefore, depth+1); err != nil {
			return nil, err
		}
		d.cost += e.directory.cost
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
