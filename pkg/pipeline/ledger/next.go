// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// Next waits for a batch and returns it. It returns the entries of the current batch that are not settled, before it assembles another.
// After an error, the caller calls Next again.
func (l *Ledger) Next(ctx context.Context) (item.Batch, error) {
	for {
		wait, some := l.untilBatch()
		if some && wait <= 0 {
			batch, err := l.prepare(ctx)
			if err != nil {
				return item.Batch{}, fmt.Errorf("store the next batch: %w", err)
			}
			if len(batch.Upserts)+len(batch.Deletes) > 0 {
				return batch, nil
			}
			continue
		}
		if err := l.wake.sleep(ctx, wait, some); err != nil {
			return item.Batch{}, err
		}
	}
}

// untilBatch returns the time until a batch may be ready. It returns false when nothing is pending.
func (l *Ledger) untilBatch() (time.Duration, bool) {
	maxItems, maxWait := l.config.MaxItems(), l.config.MaxWait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch != nil {
		return 0, true
	}
	return l.schedule.untilBatch(maxItems, maxWait)
}

// prepare returns the current batch, and assembles one if there is none. The batch is durable then. It is empty when nothing is due.
func (l *Ledger) prepare(ctx context.Context) (item.Batch, error) {
	maxItems := l.config.MaxItems()
	if l.dissolve(maxItems) {
		if err := l.Flush(ctx); err != nil {
			return item.Batch{}, err
		}
	}
	// A write would replace the rows with the items that are to be loaded.
	err := l.buffer.Exclusive(ctx, func(ctx context.Context) error {
		return l.fill(ctx, l.assemble(maxItems))
	})
	if err != nil {
		return item.Batch{}, err
	}
	if err := l.Flush(ctx); err != nil {
		return item.Batch{}, err
	}
	failpoint.Reach("batch-frozen")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		return item.Batch{}, nil
	}
	return l.batch.content(), nil
}

// dissolve ends a batch that has more entries left than maxItems, which may have been lowered because the batch was too large for the sink.
// Unsettled entries become pending again. It reports whether there was such a batch; the caller must write then.
func (l *Ledger) dissolve(maxItems int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil || !l.batch.filled || l.batch.left <= maxItems {
		return false
	}
	for e := range l.batch.unsettled() {
		l.changes.release(e)
		l.batch.settle(e)
	}
	l.unwritten.addHead()
	return true
}

// assemble creates a batch if there is none, of the kind whose oldest change has been due the longest. It returns the entries of the batch
// whose items are not loaded.
func (l *Ledger) assemble(maxItems int) []*entry {
	now := l.config.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch != nil {
		return l.batch.withoutItem()
	}
	q, _ := l.schedule.next()
	if q == nil {
		return nil
	}
	l.sequence++
	l.batch = newBatch(l.sequence, now, q.first().key.Kind)
	l.changes.take(q, l.batch, maxItems, l.maxBatchBytes)
	return l.batch.withoutItem()
}

// fill loads the items of entries of the batch from their rows, and allows the batch to be written: it does not change any more. An entry
// whose item can never be read is removed; the next list finds the object again.
func (l *Ledger) fill(ctx context.Context, entries []*entry) error {
	texts, err := l.rows.items(ctx, entries)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, text := range texts {
		switch e := entries[i]; {
		case e.text != nil: // The object was reported meanwhile.
		case text == nil:
			l.unreadable++
			l.settle(e, unknown)
		default:
			e.text = text
		}
	}
	if err == nil && l.batch != nil && !l.batch.filled {
		l.batch.filled = true
		l.unwritten.addHead()
	}
	return err
}
