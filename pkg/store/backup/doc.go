// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup writes backups of a data directory and restores them.
//
// # Content
//
// Both stores as they were at one moment, so that no working state is without the
// objects that it is about, or ahead of them; and the encryption key if it is asked
// for. The server continues to write while it is copied.
//
// # Restore
//
// An archive is checked whole before anything of the data directory changes: its
// sums, then the pages, records and numbers of its stores, then by whoever restores
// it, who knows what opens them ([Target]). What follows is decided by one rename
// (see package datadir).
//
// A restored store goes on at [RevisionGap] above everything that was handed out,
// by the store that it takes the place of or by the one that was backed up, and
// has no history before that. So a watch or a list that names a resource version
// from before is told that it is too old, and begins anew; it can neither miss what
// the restore changed nor wait for a version that never comes. Objects keep their
// names, uids and the revisions of their last change; what is written next gets a
// revision that no object ever had.
//
// The identity of a store belongs to its place rather than to its content: a
// restored store takes over that of the one it replaces, so that the process which
// comes back to it is the leader that it was before. In an empty directory it gets
// a new one, or two directories filled from one backup on one host would take
// themselves for the same leader.
package backup
