// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending collects changes of source namespaces in batches until they are recorded.
//
// A batch has one change per object, however often the object changes. Some time after its first event a batch is closed: it gets an ID and
// is immutable until it is done, and later changes are collected in the next batch. Changes have the names of objects and the authors of
// their changes, but no content. The caller that records a batch reads the objects in their current state.
//
// # Durability
//
// Events are written shortly after they were received. A crash before that loses only their authors, because the caller must compare the
// source with what is recorded at each start. A batch that was returned by Close is durable: after a restart it is returned again with the
// same ID and the same changes, until it is done. A caller that records a batch under its ID records it once.
//
// # Rows
//
//	{namespace}/{number}                        a batch: its ID once it is closed, and whether it is a resync
//	{namespace}/{number}/{group}/{kind}/{name}  a change in it
//
// The number has 16 hexadecimal digits and increases. A batch without a row of its own is open. Its changes are written before the row that
// closes it, and all rows of a batch that is done are deleted at once.
//
// # Limits
//
// The number of changes is limited by the capacity. If it is exceeded, the largest open batch drops all of its changes. Instead, its
// namespace must be compared with what is recorded (Resync), which finds the changes and takes one row. Closed batches are not affected.
package pending
