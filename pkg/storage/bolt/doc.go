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
// One goroutine commits. It takes everything that is queued, applies it in
// order to one bbolt transaction and syncs once, so that concurrent writers
// share the cost of a sync and a lone writer never waits for company. Changes
// are published to watchers after the commit and before the writers are
// answered, in revision order.
//
// # Reads
//
// Reads run in bbolt read transactions, which are kept short: what is read is
// copied out and nothing is decoded, decrypted or sent from inside one.
package bolt
