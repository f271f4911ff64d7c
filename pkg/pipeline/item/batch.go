// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import "time"

// Batch is a set of changes that are sent together. All its items and keys are of the kind, and each key occurs once.
type Batch struct {
	// ID is unique among the batches of all pipelines. It stays the same when the batch is repeated, also after a restart.
	ID string
	// Sequence increases with each batch of a sink.
	Sequence int64
	// At is when the batch was created. It stays the same when the batch is repeated.
	At   time.Time
	Kind Kind
	// Upserts are the objects as of that time.
	Upserts []Item
	// Deletes are the deleted objects.
	Deletes []Key
}

// Keys returns the keys of all changes, deletions first.
func (b Batch) Keys() []Key {
	keys := make([]Key, 0, len(b.Deletes)+len(b.Upserts))
	keys = append(keys, b.Deletes...)
	for _, upsert := range b.Upserts {
		keys = append(keys, upsert.Key)
	}
	return keys
}
