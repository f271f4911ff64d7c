// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// ErrPath is in the chain of errors about a path that no file of the branch may have.
var ErrPath = errors.New("path not usable in a Git repository")

// isEntryName tells whether a name from somebody else's tree can be one element of a path.
func isEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsRune(name, '/')
}

// checkPath refuses paths that could leave the work tree, and those with an element that a checkout or a server that
// checks objects would refuse.
func checkPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if !isEntryName(name) || strings.ContainsAny(name, "\x00\\") {
			return fmt.Errorf("%w: %q", ErrPath, path)
		}
		if own := gitname.Reserved(name); own != "" {
			return fmt.Errorf("%w: %q has the element %q, which Git can take for its own %s", ErrPath, path, name, own)
		}
	}
	return nil
}

// folders is the set of directories that are held in memory; the empty set is the whole repository.
type folders []string

// newFolders cleans the folders' paths; "", "." and "/" are the whole repository.
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

// contain tells whether the file at the path lies in one of the folders.
func (f folders) contain(path string) bool {
	for _, folder := range f {
		if strings.HasPrefix(path, folder) {
			return true
		}
	}
	return len(f) == 0
}

// reach tells whether the directory at the path (ending in a slash) is one of the folders, within one or on the way to one.
func (f folders) reach(path string) bool {
	for _, folder := range f {
		if strings.HasPrefix(path, folder) || strings.HasPrefix(folder, path) {
			return true
		}
	}
	return len(f) == 0
}
