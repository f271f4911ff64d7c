// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention removes records of syncs whose time is over, and writes them to an archive before.
//
// Which SyncStatuses go is said by the SyncPolicy and found out by package syncrecord. A record that somebody or something
// still works on stays, and one that has been written since it was looked at stays until it is looked at again.
//
// The archive is a folder of files with one record on each line, as JSON. A batch of records is on disk before the first
// of them is deleted, and all of them are deleted before the next batch is written. So whatever ends the process, a record
// is in the API, in the archive or in both; and those that are in both are in the last batch of the newest file, where they
// are found when the archive is opened again, and are not written twice. What can be there twice has the same uid: a record
// that was written again before it could be deleted, one whose retention was lengthened at that moment, and one that two
// servers have archived, each in its own folder. The last line is right.
package retention
