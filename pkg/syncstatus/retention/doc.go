// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention removes records of syncs whose time is over, and writes them to an archive before.
//
// Which SyncStatuses go is said by the SyncPolicy and found out by package syncrecord. A record that somebody or something
// still works on stays, and one that has been written since it was looked at stays until it is looked at again.
//
// An archive takes a batch of records at a time, each as a line of JSON. A batch is in the archive for certain before the
// first of it is deleted, and all of it are deleted before the next batch is written. So whatever ends the process, a record
// is in the API, in the archive or in both; and those that are in both are in the batch that was written last, which is
// found when the archive is opened again, and is not written twice. What can be there twice has the same uid: a record
// that was written again before it could be deleted, one whose retention was lengthened at that moment, and one that was
// archived in two places, because two servers have a folder each or the SyncPolicy was changed. The last line is right.
//
// One kind of archive is a folder of files, where the last batch is at the end of the newest. The other is a folder of a
// GitDestination, where each batch is a file. Whether the remote has it may be unknown for days; so the batch is kept in the
// working state, and the same file is written again until the remote is known to have it.
package retention
