// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Batch is what a consumer is told at once. All its items and keys are of the kind, and a key is in it once.
type Batch struct {
	// ID is another one for each batch of any pipeline, and stays the same when a batch is sent again.
	ID string
	// Sequence grows from batch to batch of a sink.
	Sequence int64
	// At is when the batch was put together. It stays the same, too.
	At      time.Time
	Kind    item.Kind
	Upserts []item.Item
	Deletes []item.Key
}

// Source is who tells.
type Source struct {
	Pipeline, Sink string
	// Collection is where DotAI keeps what it learns of definitions.
	Collection string
}

// Keys are those that the batch tells of.
func (b Batch) Keys() []item.Key {
	keys := make([]item.Key, 0, len(b.Deletes)+len(b.Upserts))
	keys = append(keys, b.Deletes...)
	for _, upsert := range b.Upserts {
		keys = append(keys, upsert.Key)
	}
	return keys
}

// given is the map, or an empty one: consumers get {} and never null.
func given(texts map[string]string) map[string]string {
	if texts == nil {
		return map[string]string{}
	}
	return texts
}
