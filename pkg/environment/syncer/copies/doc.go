// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies stores the objects that were last applied in each environment, and those that were applied for earlier revisions of
// its catalog.
//
// The last applied objects are the base of the next three-way merge. A deleted target namespace is rebuilt from them, and a rollback
// restores the objects of an earlier revision, whatever the source contains by then. Copies include Secrets: the work store encrypts
// all rows, and their keys, which are not encrypted, contain no content and no hashes.
//
// It is a package of its own below syncer because it is a store with its own rows, write order and recovery, and knows nothing of
// plans or of clusters.
//
// # Rows
//
//	environment/{uid}         namespace and name of an environment that may have other rows
//	current/{uid}             the revision that was stored last, 0 while the environment has no revision as a whole
//	head/{uid}/{revision}     which objects were applied for a revision, and the numbers of the parts of each object's content
//	content/{uid}/{number}    a part of the content of an object, stored once for all revisions that share it; the number is random
//
// The content of an object is its compressed JSON. Most contents have one part. A content that does not fit into one request to the
// store has several, so that every object that the cluster accepts can be stored.
//
// # Restarts
//
// A head is written after the content that it names, and deleted before it. Objects are stored after they were applied: after a crash
// in between, the store has the previous objects, and the next merge finds in managedFields what our field manager has applied since.
// If a write fails, the content that it has written is deleted, unless a head names it. A crash can leave content that no head names,
// which Sweep deletes.
//
// An environment is synced by one process at a time. If a process that no longer leads still writes, heads can name content that
// is deleted. Such objects are treated as if they had never been stored.
package copies
