// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger answers what a sink of a pipeline has been told, what it is to be told, and when.
//
// Who looks at the cluster says what there is: Upsert and Remove as it changes, Retain after a list. The ledger compares that with what
// the sink was told last, of each object the digest, and what differs is pending until the sink has been told. Of an object at most one
// change is pending, the last one: changes collapse, and may collapse to nothing. Next hands out what is due in batches, one at a time.
//
// # When
//
// A change is due when its object has not changed for a while (the debounce), or ten such whiles after the first change. Removals are due
// at once, and so is what somebody has asked for. A batch is handed out when it is full, or some time after the first change in it was due.
//
// # What is durable
//
// Changes are written a moment after they have come. When the process dies before, a list finds them again, which has to be made at each
// start anyway. A batch that has been handed out is durable: after a restart it is handed out again, with the same ID and content, less
// what was settled; and what was settled is durable when Delivered or Rejected returns. An object that the sink may have is not forgotten
// before its removal was delivered.
//
// # Rows
//
//	{prefix}{key}    an object: what the sink was told last, and what is pending or was rejected, with the item
//	{prefix}batch    the batch that was handed out last, with its items; when all of it is settled, only its sequence
//
// The row of a batch is written after those of all objects. Entries of the batch are settled when the row of their object says so; that
// of an object that is gone goes when its removal was delivered. A row that cannot be read leaves an object of which is not known what
// the sink was told: the next comparison tells of it again.
//
// # Bounds
//
// There is one row for an object, and no capacity. Items are in memory only until they are written, and those of one batch.
package ledger
