// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package datadir answers whose a data directory is, and how its files are
// replaced all at once.
//
// # Whose
//
// The process that holds the lock ([Open]) may open, move and replace the files.
// The stores have locks of their own, but those go with the files when files are
// moved.
//
// # Replacing
//
// New files are written to a folder beside the old ones ([Stage]). One rename of
// that folder ([Incoming.Commit]) decides that they take the old files' place;
// before it nothing has happened, after it nothing else can happen any more:
//
//	incoming/              a folder that is being filled; whoever opens the directory next removes it
//	ready-TIME/            a folder that is complete; whoever opens the directory next installs it
//	before-restore-TIME/   what was there before, kept for people to look at or to remove
//
// To install is to move, name by name, the old file aside and the new one to its
// place. A name that is gone from the folder is done, so it can be begun again
// after a crash anywhere in it. With a file goes what has its name with something added,
// such as the unfinished copy of a defragmentation.
package datadir
