// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bolt answers how API objects are kept in one local file with the
// guarantees of etcd: an MVCC engine on bbolt that speaks etcd's own requests,
// and the seam that puts it under upstream's etcd3 store and watch cache.
//
// # Model
//
// The store has one revision, 1 when empty and one higher after every
// transaction that changed something. A transaction whose comparison fails, or
// that deletes nothing, consumes none. Every key carries the revision of its
// creation, of its last change, and the number of changes since its creation.
//
// # File
//
// The file holds six buckets:
//
//	meta       format, revision, compacted revision, store identity, last entry of the journal
//	keys       key                             -> current state
//	log        segment / revision, sub         -> change, with the state before it
//	counts     directory                       -> number of keys below it
//	leases     lease                           -> time to live, expiry
//	leasekeys  lease, key                      -> nothing
//
// The log is both the history that watches replay and the means to read an old
// revision: current state rolled back by the states that the log's records
// carry. It is cut in segments of [segmentRevisions] revisions, one bucket each,
// so that compaction drops whole buckets.
//
// # Writes
//
// One goroutine commits. It takes everything that is queued, applies it in
// order to one bbolt transaction, appends it to the journal, syncs that once, and
// commits, so that concurrent writers share the cost of a sync and a lone writer
// never waits for company. Changes
// are published to watchers after the commit and before the writers are
// answered, in revision order.
//
// # Durability
//
// bbolt does not sync the file. What it lacks on disk is in the journal, two files beside it
// (package journal), from the last checkpoint on: a state of the file whose pages
// are all on disk, and which a read transaction keeps bbolt from writing to. A checkpoint is
// made in the background: a new read transaction, a sync of the file, a record in
// the journal with the meta page that leads to the state; then the one before is let go.
//
// An engine that is opened on a file that was not closed puts that meta page back before bbolt
// looks at the file, and makes the journal's entries again. What the file holds beyond
// the checkpoint is not looked at: after a kill it is all there, after a power loss any
// part of it. That the process may die in this, too, is no case of its own.
//
// The flags of the meta pages tell which file needs its journal:
//
//	0  written by bbolt alone, by the format before this one, or a copy by bbolt.Compact: complete
//	1  closed, or opened and not yet written to: complete
//	2  needs the journal, unless both meta pages are of one state: that is a
//	   copy made with bbolt's Tx.WriteTo, and complete
//
// So a copy of a store is one file, whether made of a read transaction of the
// running engine or of a closed file. A journal that lies beside a complete file is of
// another time; it is not looked at, and goes with the next write.
//
// # Reads
//
// Reads run in bbolt read transactions, which are kept short: what is read is
// copied out and nothing is decoded, decrypted or sent from inside one.
package bolt
