// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commitindex stores which commit of which Git destination holds which version of an object.
//
// It is the one table that answers this question. The mirror writes it: it prepares the entries of a push before it sends the
// push, and records them after the remote has accepted it. Readers set the scope, the objects that entries are stored for,
// and look objects up. What a reader needs to know of a commit is a field of Entry or Commit.
//
// # Durability
//
// Prepared entries are durable before the push is sent. Record is idempotent: if the mirror calls it at least once for every
// push that the remote has accepted, no entry is lost, however often the process dies. Entries are stored for MaxAge, the newest
// MaxPerObject of each object and the newest DefaultCapacity of all. Commits made before an object came into scope have no entry.
//
// # Rows
//
//	scope                                                                  the scope
//	pushes/{tip}/{number}                                                  prepared entries of a push
//	objects/{namespace}/{group}/{resource}/{name}/{destination}/{commit}   a recorded entry
//
// Record moves the entries of a push to their objects. Those of a push that is never accepted expire.
package commitindex
