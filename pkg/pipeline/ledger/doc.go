// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger stores what each sink of a pipeline has received, and queues the changes that it has not.
//
// The observer reports the objects of the cluster: Upsert and Remove as they change, Retain after a list. The ledger compares their digests
// with what the sink received last; a difference is pending until it is delivered. Each object has at most one pending change, the latest:
// changes collapse, and may cancel each other. Next returns due changes in batches, one batch at a time.
//
// # When
//
// A change is due when its object has not changed for the debounce period, or ten periods after the first change. Removals and requested
// changes are due at once. A batch is returned when it is full, or maxWait after its first change was due.
//
// # What is durable
//
// Changes are written shortly after they are reported. If the process dies before, the list that every start makes finds them again. A
// batch is durable before it is returned: after a restart it is returned again, with the same ID and content, without the entries that were
// settled. The result of an entry is durable when Delivered or Rejected returns. An object that the sink may have is not deleted before its
// removal was delivered.
//
// # Rows
//
//	{prefix}{key}    an object: what the sink received last, and what is pending or was rejected, with the item
//	{prefix}batch    the current batch with its items; when all of it is settled, only its sequence
//
// The row of a batch is written after those of its objects are written or deleted. An entry is settled when the row of its object says so; the row of a deleted
// object is deleted when the removal was delivered. An unreadable row leaves an object in the state unknown: the next comparison sends it
// again.
//
// # Parts
//
//	Ledger      has the exported methods; locks the state and coordinates the parts
//	changes     determines which objects have pending changes, and keeps the next four consistent
//	objects     finds objects by key, and counts them by state
//	schedule    has the pending changes, in a queue for each kind; determines when a batch is due
//	unwritten   has the keys of outdated rows, and the items that are in no row
//	run         counts the progress of a run
//	batchState  has the entries of the current batch
//	rows        finds and reads stored rows; encodeRow and encodeHead encode them
//	room        makes Upsert wait while too many rows are outdated
//	wakeup      makes Next wait
//	restorer    reads the rows into the parts, when the ledger is opened
//
// # Bounds
//
// There is one row for an object, and no capacity limit. Items are in memory only until they are written, and for the current batch. Upsert
// waits while too much is unwritten, but not while writes fail: watches continue then, and memory has at most one item for each object.
package ledger
