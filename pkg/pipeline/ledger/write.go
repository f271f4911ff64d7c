// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
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
	rowBytes = 512
	// finalFlushTimeout bounds the last write, when the process ends.
	finalFlushTimeout = 5 * time.Second
)

// headItem identifies the row of the batch in the buffer. It is the key of no object.
var headItem item.Key

// newBuffer returns the buffer of outdated rows. It uses real time, because it waits for the disk.
func (l *Ledger) newBuffer() *table.Buffer[item.Key] {
	return table.NewBuffer(table.BufferConfig[item.Key]{
		Table: l.config.Table, Lock: &l.mu,
		MaxRows: maxRows, MaxBytes: maxBytes,
		Interval: flushInterval, DrainTimeout: finalFlushTimeout,
		Encode: l.encodeRows, Done: l.written,
	})
}

// Run writes changes until ctx ends, and then what is left. Failed writes are retried; Counts returns their error.
func (l *Ledger) Run(ctx context.Context) {
	l.setRunning(true)
	defer l.setRunning(false)
	l.buffer.Run(ctx)
}

func (l *Ledger) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
	l.room.Broadcast()
}

// waitForRoom blocks while too many changes wait to be written, unless writes fail or Run is not running.
func (l *Ledger) waitForRoom() {
	for l.buffer.Full() && l.running && l.blocked == nil {
		l.room.Wait()
	}
}

// Flush makes all changes durable. After an error a part may be written, but nothing counts as durable.
func (l *Ledger) Flush(ctx context.Context) error {
	if err := l.buffer.Flush(ctx); err != nil {
		return fmt.Errorf("write the sink ledger: %w", err)
	}
	return nil
}

// writeRow has the row of an object written.
func (l *Ledger) writeRow(o *object, key item.Key) {
	o.changed = true
	l.buffer.Add(key, rowBytes+len(l.items[key]))
}

// writeHead has the row of the batch written.
func (l *Ledger) writeHead() { l.buffer.Add(headItem, rowBytes) }

// encodeRows returns the writes of outdated rows. The row of the batch is written after those of objects.
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
			writes.Rows = append(writes.Rows, l.encode(key, o))
		} else {
			writes.Deleted = append(writes.Deleted, l.rowKey(key))
		}
	}
	if head {
		writes.Rows = append(writes.Rows, l.encodeHead())
	}
	l.settling = head && l.batch != nil && l.batch.left == 0
	return writes
}

// written ends an attempt to write rows. It drops the items that are stored in rows now. An item that is pending while the batch contains
// another change of the object stays in memory: its row is written again when the entry is settled.
func (l *Ledger) written(keys []item.Key, err error) {
	defer l.room.Broadcast()
	if err != nil {
		if !errors.Is(err, context.Canceled) { // This error is the caller's, and not the store's.
			l.blocked = err
		}
		return
	}
	l.blocked = nil
	for _, key := range keys {
		if o := l.objects.find(key); o == nil || !o.changed && !o.inBatch {
			delete(l.items, key)
		}
	}
	if l.settling {
		l.batch = nil
		l.wake.signal()
	}
}
