// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"

	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// RecordFunc records the result of one part of a batch. When it fails, the result is not durable yet.
type RecordFunc func(keys []item.Key, result format.Result) error

// Sink delivers batches to one receiver, one batch at a time.
type Sink interface {
	// Deliver sends a batch part by part, in order, and records the result of each part before it sends the next. It stops after a
	// part whose outcome is Retry or Waiting; the parts after it have no result. It returns an error only when record fails, when the
	// batch cannot be encoded, or when ctx ends.
	Deliver(ctx context.Context, batch item.Batch, record RecordFunc) error
	// Close releases what the sink holds open. It is not called during Deliver.
	Close()
}
