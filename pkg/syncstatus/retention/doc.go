// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention deletes expired SyncStatuses, after writing them to an archive.
//
// The SyncPolicy and package syncstatus decide which SyncStatuses expire. A record that is not settled is kept, and so is one that has
// changed since it was read, until the next sweep.
//
// # Crash safety
//
// An archive stores records in batches, each record as a line of JSON. A batch is durably stored before its first record is deleted, and
// all of its records are deleted before the next batch is written. So after a crash a record is in the API, in the archive, or in both.
// Records in both are in the last batch, which is read when the archive is opened again, and are not written twice. Lines with the same
// uid exist only for a record that was updated before it could be deleted, one whose retention was extended at that moment, and one that
// was archived in two places, because two servers have a folder each or the SyncPolicy was changed. The last line is the valid one.
//
// An archive is either a folder of files, with the last batch at the end of the newest one, or a folder of a GitDestination, with one
// file for each batch. Whether the remote has a file may be unknown for days. So the last batch is stored in the work store, and the same
// file is written again until the remote is known to have it.
package retention
