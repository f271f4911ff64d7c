// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Batch is a set of changes that are sent together. All its items and keys are of the kind, and each key occurs once.
type Batch struct {
	// ID is unique among the batches of all pipelines. It stays the same when a batch is repeated.
	ID string
	// Sequence increases with each batch of a sink.
	Sequence int64
	// At is when the batch was created. It stays the same when the batch is repeated.
	At      time.Time
	Kind    item.Kind
	Upserts []item.Item
	Deletes []item.Key
}

// Source identifies the pipeline and the sink of a batch.
type Source struct {
	Pipeline, Sink string
	// Collection is where DotAI stores the capabilities of definitions.
	Collection string
}

// Keys returns the keys of all changes, deletions first.
func (b Batch) Keys() []item.Key {
	keys := make([]item.Key, 0, len(b.Deletes)+len(b.Upserts))
	keys = append(keys, b.Deletes...)
	for _, upsert := range b.Upserts {
		keys = append(keys, upsert.Key)
	}
	return keys
}

// notNil returns the map, or an empty one: consumers get {} and never null.
func notNil(texts map[string]string) map[string]string {
	if texts == nil {
		return map[string]string{}
	}
	return texts
}
