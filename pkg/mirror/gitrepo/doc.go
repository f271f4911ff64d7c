// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitrepo answers how a branch of a remote Git repository is read and changed without a clone: it holds the
// branch as a tree of blob hashes, builds exactly the new objects of each commit into a pack, and pushes that pack as a
// compare-and-swap of the branch's tip.
//
// There is no work tree, no index and no local object store. Memory follows the number of files (about a hundred bytes
// each); the cost of a commit follows the change and the width of the directories on its path, not the repository.
//
// A Branch belongs to one goroutine. The Trees it hands out are immutable and may be read by any.
package gitrepo
