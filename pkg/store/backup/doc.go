// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup writes backups of a data directory and restores them.
//
// # Content
//
// A backup holds both stores at a single point in time, so that no working state lacks the objects that it refers to or
// is ahead of them, and optionally the encryption key. The server continues to write during the backup.
//
// # Restore
//
// An archive is verified completely before the data directory changes: its checksums, then the pages, records and
// revisions of its stores, then by the caller's check, which can decrypt its content ([Target]). A single rename then
// commits the restore (see package datadir).
//
// The revision of a restored store is raised to [RevisionGap] above every revision that was handed out by the replaced
// store or by the one in the backup, and its earlier history is compacted. So a watch or list with an earlier resource
// version fails because it is too old, and the client lists again. It can neither miss the changes of the restore nor
// wait for a version that never comes. Objects keep their names, uids and the revisions of their last change. The next
// write gets a revision that no object ever had.
//
// The identity of a store belongs to its location, not to its content. A restored store takes over the identity of the
// replaced one, so that the process that restarts on it is still the same leader. In an empty directory it gets a new
// identity. Otherwise two directories on one host that were filled from the same backup would take themselves for the
// same leader.
package backup
