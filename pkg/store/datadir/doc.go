// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package datadir locks a data directory for one process and replaces its files
// all at once.
//
// # Locking
//
// The process that holds the lock ([Open]) may open, move and replace the files.
// The stores have locks of their own, but those go with the files when files are
// moved.
//
// # Replacing
//
// New files are written to a folder beside the old ones ([Stage]). One rename of
// that folder ([Incoming.Commit]) decides that they replace the old files.
// Before it nothing has changed, after it the replacement is always completed:
//
//	incoming/              a folder that is being filled; the next Open removes it
//	ready-TIME/            a folder that is complete; the next Open installs it
//	before-restore-TIME/   the replaced files, kept for the user
//
// Installing moves, name by name, the old file aside and the new one to its
// place. A name that is no longer in the folder is done, so installing can be repeated
// after a crash at any step. With a file goes what has its name with something added,
// such as the unfinished copy of a defragmentation.
package datadir
