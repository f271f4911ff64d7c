// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitname finds the names of files and directories that Git refuses or reads as its own, on any file system that
// a branch is checked out to.
//
// The rules are those of Git's fsck and of its settings core.protectHFS and core.protectNTFS. A tree with a name that they
// refuse is refused by servers that check what is pushed to them (receive.fsckObjects), and by clients that fetch it.
package gitname
