// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"maps"
	"slices"
	"time"
)

// Batch has the changes of a namespace within a window. It is immutable.
type Batch struct {
	// ID is unique. It is the same each time that the batch is returned, also after a restart.
	ID        string
	Namespace string
	// Changes are the known changes, sorted by kind and name, each object once.
	Changes []Change
	// Resync is true if Changes may be incomplete. Then the whole namespace must be compared with what is recorded, to find other changes
	// and deletions.
	Resync bool
	// FirstSeen is when the first event was received.
	FirstSeen time.Time
}

// batch is a Batch that changes until it is closed. It is guarded by the mutex of its intake.
type batch struct {
	namespace string
	// number is part of the keys of its rows.
	number uint64
	// id is empty while the batch is open.
	id     string
	resync bool
	// overflowed is true if the changes have been dropped. Further ones are dropped as well.
	overflowed bool
	// first is when the first event was received. opened is the start of the window: the same time, but never in the future.
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

// content returns the content of a closed batch.
func (b *batch) content() Batch {
	out := Batch{ID: b.id, Namespace: b.namespace, Resync: b.resync, FirstSeen: b.first}
	for _, object := range slices.SortedFunc(maps.Keys(b.changes), compareObjects) {
		change := *b.changes[object]
		change.Authors = slices.Clone(change.Authors)
		out.Changes = append(out.Changes, change)
	}
	return out
}
