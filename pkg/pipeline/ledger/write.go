// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// flushInterval is the minimum time between two writes of changes.
	flushInterval = 100 * time.Millisecond
	// maxRows bounds the rows that are outdated, those being written included, before Upsert blocks. Half of them are written immediately.
	maxRows = 8192
	// maxBytes bounds their size, as rowBytes for each and their items.
	maxBytes = 64 << 20
)

// Run writes changes until ctx ends, and then what is left. Failed writes are retried; Counts returns their error.
func (l *Ledger) Run(ctx context.Context) {
	l.setRunning(true)
	defer l.setRunning(false)
	l.buffer.Run(ctx)
}

func (l *Ledger) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room.setRunning(running)
}

// Flush makes all changes durable. After an error a part may be written, but nothing counts as durable.
func (l *Ledger) Flush(ctx context.Context) error {
	if err := l.buffer.Flush(ctx); err != nil {
		return fmt.Errorf("write the sink ledger: %w", err)
	}
	return nil
}

// encodeRows returns the writes of outdated rows. The buffer calls it without mu. The row of the batch is written last.
func (l *Ledger) encodeRows(take func() []item.Key) table.Writes {
	l.mu.Lock()
	defer l.mu.Unlock()
	var writes table.Writes
	head := false
	for _, key := range take() {
		if key == headItem {
			head = true
			continue
		}
		if o := l.objects.find(key); o != nil {
			o.changed = false
			writes.Rows = append(writes.Rows, table.Row{
				Key: l.rows.key(key), Value: encodeRow(key, o, l.batch, l.unwritten.items[key]),
			})
		} else {
			writes.Deleted = append(writes.Deleted, l.rows.key(key))
		}
	}
	if head {
		writes.Last = append(writes.Last, table.Row{Key: l.rows.headKey(), Value: encodeHead(l.sequence, l.batch)})
	}
	l.settling = head && l.batch != nil && l.batch.left == 0
	return writes
}

// written ends an attempt to write rows. The buffer calls it with mu held.
func (l *Ledger) written(keys []item.Key, err error) {
	l.room.written(err)
	if err != nil {
		return
	}
	l.unwritten.written(keys, l.objects)
	if l.settling {
		l.batch = nil
		l.wake.signal()
	}
}
