// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending answers what has changed in a source namespace and is not recorded yet.
//
// What changes in a namespace gathers in a batch, one change per object however often the object changes. Some time after
// its first event a batch is closed: it has an ID and stays as it is until it is done, and what changes meanwhile gathers in
// the next one. Changes say which objects to look at and who was there, not what is in them: who records a batch looks at
// the objects as they are then.
//
// # What is durable
//
// Events are written a moment after they have come; when the process dies before, only who made them is lost, because who
// watches a source has to compare it with what is recorded at each start anyway. A batch that has been handed out is
// durable, with its ID: after a restart it is handed out again, with the same ID and the same changes, until it is done.
// Whoever records it under its ID records it once.
//
// # Rows
//
//	{namespace}/{number}                        a batch: its ID once it is closed, and whether it is a resync
//	{namespace}/{number}/{group}/{kind}/{name}  a change in it
//
// The number is 16 hexadecimal digits and rises. A batch without a row of its own is open. Its changes are written before
// the row that closes it, and a batch that is done goes with all its rows at once.
//
// # Bounds
//
// There are at most so many changes as the capacity says. One more makes the namespace that has most of them in its open
// batch drop all of these: its batch says instead that the namespace is to be compared with what is recorded (Resync), which
// finds them and costs one row. Closed batches are never touched.
package pending
