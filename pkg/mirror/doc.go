// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror commits the objects that rules select to Git branches.
//
// The path of one change: a watch of pkg/kube/watch delivers it; the router renders it once (pkg/kube/manifest) and finds
// the destinations whose rules select it; a row in the outbox makes it durable; the worker of the destination's branch
// groups rows into commits, in order, pushes them, and only then removes the rows.
//
// Whenever a watch starts or restarts, or a selection changes, the worker lists the types concerned and compares the cluster
// with the branch. So every change that no watch delivered, because the server was stopped or history was compacted, is
// found, deletions included.
//
// Nothing is acknowledged before the remote has accepted the push. After a crash anywhere on this path the next process
// finds the rows that were not pushed, a note of the push that the remote may have accepted, and the cluster itself.
//
// A destination also writes files of other parts of the server (Deposits), in the server's own folder. They are not in the
// outbox: the caller keeps each until the remote has accepted it.
package mirror
