// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
)

const (
	// maxDepth bounds how deep directories are nested in each other.
	maxDepth = 512
	// maxPath is the length of a directory's path in bytes beyond which nothing is read: what Linux takes for a file's.
	maxPath = 4096
	// expandedSize is how much more memory the entries of a tree object take than its content, at most: their names, and
	// twice the shortest entry for each.
	expandedSize = 3
)

// errIncomplete says that a tree is not among the objects at hand.
var errIncomplete = errors.New("a tree object is missing")

// treeLoader expands trees within the managed folders.
type treeLoader struct {
	fetched objects
	folders folders
	// known finds the directories of an earlier tree by hash, for those that the server knows we have.
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
	loader.remember(before)
	return loader.load(ctx, links.tree, "", before, 0)
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

// load expands one directory; its path is empty or ends in a slash. Each is held as often as it is named: a few small
// objects can stand for billions of paths.
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
