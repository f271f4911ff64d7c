// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitrepo reads and commits to a branch of a remote Git repository without a clone. It holds the branch as a
// tree of blob hashes, packs exactly the new objects of each commit, and pushes the pack as a compare-and-swap of the
// branch's tip.
//
// There is no work tree, no index and no local object store. Memory grows with the number of files (about a hundred bytes
// each). The cost of a commit grows with the change and the width of the directories on its path, not with the repository.
//
// A Branch is not safe for concurrent use. The Trees it returns are immutable and safe for concurrent use.
package gitrepo
