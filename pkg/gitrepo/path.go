// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPath is in the chain of errors about a path that no file of the branch may have.
var ErrPath = errors.New("path not usable in a Git repository")

// isEntryName tells whether a name from somebody else's tree can be one element of a path.
func isEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsRune(name, '/')
}

// checkPath refuses paths that a checkout would refuse or that could leave the work tree.
func checkPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if !isEntryName(name) || strings.ContainsAny(name, "\x00\\") || isGitDirectory(name) {
			return fmt.Errorf("%w: %q", ErrPath, path)
		}
	}
	return nil
}

// isGitDirectory tells whether some file system would take the name for ".git": trailing dots and spaces are dropped
// there, letter case may not count, "git~1" is its short form, and what follows a colon is a stream of the same file.
func isGitDirectory(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
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
