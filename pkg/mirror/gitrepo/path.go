// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// errPath is wrapped by errors about a path that is not allowed on a branch.
var errPath = errors.New("path not usable in a Git repository")

// isEntryName reports whether the name of a tree entry can be an element of a path.
func isEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsRune(name, '/')
}

// checkPath returns an error for a path that could leave the work tree, or that has an element which a checkout or a
// server that checks objects refuses.
func checkPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if !isEntryName(name) || strings.ContainsAny(name, "\x00\\") {
			return fmt.Errorf("%w: %q", errPath, path)
		}
		if own := gitname.Reserved(name); own != "" {
			return fmt.Errorf("%w: %q has the element %q, which Git can take for its own %s", errPath, path, name, own)
		}
	}
	return nil
}

// folders is the set of directories that are held in memory; the empty set is the whole repository.
type folders []string

// newFolders returns the set of folders with cleaned paths. "", "." and "/" are the whole repository.
func newFolders(paths []string) (folders, error) {
	cleaned := make(folders, 0, len(paths))
	for _, path := range paths {
		path = strings.Trim(path, "/")
		if path == "" || path == "." {
			return nil, nil
		}
		if err := checkPath(path); err != nil {
			return nil, fmt.Errorf("managed folder: %w", err)
		}
		cleaned = append(cleaned, path+"/")
	}
	return cleaned, nil
}

// contain reports whether the file at the path is in one of the folders.
func (f folders) contain(path string) bool {
	for _, folder := range f {
		if strings.HasPrefix(path, folder) {
			return true
		}
	}
	return len(f) == 0
}

// reach reports whether the directory at the path (ending in a slash) is one of the folders, or below or above one.
func (f folders) reach(path string) bool {
	for _, folder := range f {
		if strings.HasPrefix(path, folder) || strings.HasPrefix(folder, path) {
			return true
		}
	}
	return len(f) == 0
}
