// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"maps"
	"slices"
	"time"
)

// Batch is what has changed in a namespace within a window. It does not change any more.
type Batch struct {
	// ID is the same whenever the batch is handed out, before a restart and after, and that of no other batch.
	ID        string
	Namespace string
	// Changes are those that are known, by kind and name, each object once.
	Changes []Change
	// Resync says that there may be others: the whole namespace is to be compared with what is recorded, and what was
	// deleted found out.
	Resync bool
	// FirstSeen is when the first event came.
	FirstSeen time.Time
}

// batch is a Batch that changes until it is closed. The mutex of its intake guards it.
type batch struct {
	namespace string
	// number makes the keys of its rows.
	number uint64
	// id is empty while the batch is open.
	id     string
	resync bool
	// overflowed says that changes have been dropped, and that further ones are not taken up.
	overflowed bool
	// first is when the first event came; the window is counted from opened, which is the same but never in the future.
	first, opened time.Time
	changes       map[Object]*Change
}

func newBatch(namespace string, number uint64, first time.Time) *batch {
	return &batch{
		namespace: namespace, number: number, first: first, opened: first,
		changes: map[Object]*Change{},
	}
}

func (b *batch) isOpen() bool { return b.id == "" }

// content is called for a batch that is closed.
func (b *batch) content() Batch {
	out := Batch{ID: b.id, Namespace: b.namespace, Resync: b.resync, FirstSeen: b.first}
	for _, object := range slices.SortedFunc(maps.Keys(b.changes), compareObjects) {
		change := *b.changes[object]
		change.Authors = slices.Clone(change.Authors)
		out.Changes = append(out.Changes, change)
	}
	return out
}
