// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// Delivered records that the sink accepted objects of a batch. The result is durable if there is no error; otherwise it
// becomes durable with the next write, and is lost only if the process ends before: the batch is sent again then.
func (l *Ledger) Delivered(ctx context.Context, id string, keys []item.Key) error {
	return l.settleAll(ctx, id, keys, delivered)
}

// Rejected records that the sink rejected objects of a batch. They are sent again when they change, or after Expedite or MarkRun. An error
// means the same as that of Delivered.
func (l *Ledger) Rejected(ctx context.Context, id string, keys []item.Key) error {
	return l.settleAll(ctx, id, keys, rejected)
}

// settleAll settles objects of the batch. All other batches are settled and durable already.
func (l *Ledger) settleAll(ctx context.Context, id string, keys []item.Key, result sinkState) error {
	if !l.settleInMemory(id, keys, result) {
		return nil
	}
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("store the result of a batch: %w", err)
	}
	failpoint.Reach("batch-settled")
	return nil
}

// settleInMemory settles objects in memory. It returns false if the current batch has another ID.
func (l *Ledger) settleInMemory(id string, keys []item.Key, result sinkState) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil || l.batch.id != id {
		return false
	}
	for _, key := range keys {
		if e := l.batch.entries[key]; e != nil && !e.settled {
			l.settle(e, result)
		}
	}
	return true
}

// settle ends an entry of the batch with a result. The caller holds mu.
func (l *Ledger) settle(e *entry, result sinkState) {
	l.run.countEntry(e, result == rejected)
	l.changes.settle(e, result)
	if l.batch.settle(e); l.batch.left == 0 {
		l.unwritten.addHead()
	}
}
