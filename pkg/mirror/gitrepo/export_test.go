// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

// ErrPath is wrapped by errors about a path that is not allowed on a branch.
var ErrPath = errPath

// Len returns the number of regular files below the folder.
func (t *Tree) Len(folder string) (files int) {
	_ = t.Walk(folder, func(string, Hash) error {
		files++
		return nil
	})
	return files
}

// Scrub removes the secrets of the credentials from a text.
func (c Credentials) Scrub(text string) string { return c.scrub(text) }
