// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitname detects the names of files and directories that Git rejects or reserves, on any file system that a
// branch is checked out to.
//
// The rules are those of Git's fsck and of its settings core.protectHFS and core.protectNTFS. Servers that check pushes
// (receive.fsckObjects) and fetching clients reject a tree with such a name.
package gitname
