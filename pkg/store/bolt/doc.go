// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bolt stores API objects in one local file with the guarantees of etcd: an MVCC
// engine on bbolt that serves etcd's own requests, and the adapter that puts it under
// upstream's etcd3 store and watch cache.
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
//	meta       format, revision, compacted revision, store identity
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
// One goroutine commits. It takes all queued writes, applies them in order to one bbolt
// transaction and commits it, so that concurrent writers share the cost of the syncs and a
// lone writer never waits for others. Changes are published to watchers after the commit and
// before the writers get their responses, in revision order.
//
// # Durability
//
// A commit is bbolt's: it writes the changed pages to free pages and syncs them, then writes
// the meta page that makes them valid and syncs that. When it returns, the batch is on
// disk. After a kill or a power loss the file has the state of the last commit, or of the one before
// it if the last one was not acknowledged. A copy of the file is complete if it was made of
// a read transaction or of a closed file.
//
// A commit that fails before its meta page is in the file leaves nothing, and later ones
// succeed once the cause is resolved. If the sync of the meta page fails, it is unknown whether
// the commit is on disk: the engine refuses writes and fails its health check until the
// file is opened again, which writes and syncs the meta page once more before anything else.
//
// # Reads
//
// Reads run in bbolt read transactions, which are kept short: what is read is
// copied out and nothing is decoded, decrypted or sent from inside one.
package bolt
