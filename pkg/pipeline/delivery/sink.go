// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"

	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Done notes what became of a part of a batch. When it fails, that is not known to anybody, and the part is sent again.
type Done func(keys []item.Key, verdict format.Verdict) error

// Sink is somebody who is told of batches, one after the other.
type Sink interface {
	// Deliver tells of a batch part by part, in order, and says of each part what became of it before it goes on. It stops after a
	// part that is to be tried again or has to wait; nothing is said of what comes after that. It returns an error only when done
	// does, when the batch cannot be written, or when ctx ends.
	Deliver(ctx context.Context, batch format.Batch, done Done) error
	// Close gives back what the sink holds open. Nobody is told of anything at that time.
	Close()
}
