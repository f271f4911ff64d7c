// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// flushInterval is the minimum time between two writes of changes.
	flushInterval = 100 * time.Millisecond
	// maxDirty is how many objects wait to be written before Upsert blocks.
	maxDirty = 4096
	// finalFlushTimeout bounds the last write, when the process ends.
	finalFlushTimeout = 5 * time.Second
)

// Run writes changes until ctx ends, and then what is left. Failed writes are retried; Counts returns their error.
func (l *Ledger) Run(ctx context.Context) {
	l.setRunning(true)
	defer l.setRunning(false)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.flush:
			l.writeAll(ctx)
			pause(ctx, flushInterval, l.full)
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalFlushTimeout)
	defer cancel()
	if err := l.Flush(rest); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to persist sink ledger, leaving the changes to the next list")
	}
}

func (l *Ledger) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
	l.room.Broadcast()
}

// writeAll writes all changes. It retries until it succeeds or ctx ends.
func (l *Ledger) writeAll(ctx context.Context) {
	backoff := wait.Backoff{Duration: flushInterval, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	for ctx.Err() == nil {
		err := l.Flush(ctx)
		if err == nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Failed to persist sink ledger, retrying")
		pause(ctx, backoff.Step(), nil)
	}
}

// pause waits, or until it is woken. It uses real time, because it waits for the disk.
func pause(ctx context.Context, length time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// waitForRoom blocks while too many changes wait to be written, unless writes fail or Run is not running.
func (l *Ledger) waitForRoom() {
	for len(l.dirty) >= maxDirty && l.running && l.blocked == nil {
		signal(l.full)
		l.room.Wait()
	}
}

// Flush makes all changes durable.
func (l *Ledger) Flush(ctx context.Context) error {
	if err := l.lockWrites(ctx); err != nil {
		return err
	}
	defer l.unlockWrites()
	return l.write(ctx)
}

func (l *Ledger) lockWrites(ctx context.Context) error {
	select {
	case l.writeLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Ledger) unlockWrites() { <-l.writeLock }

// write makes all changes durable. The caller holds the write lock. After an error a part may be written, but nothing counts as durable.
func (l *Ledger) write(ctx context.Context) error {
	w := l.take()
	err := l.config.Table.Put(ctx, w.rows...)
	if err == nil {
		err = l.config.Table.Delete(ctx, w.gone...)
	}
	if err != nil {
		l.giveBack(w, err, ctx.Err() == nil)
		return fmt.Errorf("write the sink ledger: %w", err)
	}
	l.written(w)
	return nil
}

// writing is a set of changes that are being written.
type writing struct {
	// rows are the rows of objects, followed by that of the batch, which must be written after them. gone are the keys of rows to delete.
	rows []table.Row
	gone []string
	keys map[item.Key]struct{}
	// head reports whether rows contains that of the batch, settled whether all of the batch is settled.
	head, settled bool
}

// take returns the changes that are not durable, and marks them as durable.
func (l *Ledger) take() writing {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := writing{keys: l.dirty, head: l.headDirty, settled: l.headDirty && l.batch != nil && l.batch.left == 0}
	for key := range l.dirty {
		if o := l.find(key); o != nil {
			w.rows = append(w.rows, l.encode(key, o))
		} else {
			w.gone = append(w.gone, l.rowKey(key))
		}
	}
	if w.head {
		w.rows = append(w.rows, l.encodeHead())
	}
	l.dirty, l.headDirty = map[item.Key]struct{}{}, false
	l.room.Broadcast()
	return w
}

// written drops the items that are stored in rows now. An item that is pending while the batch contains another change of the object stays
// in memory: its row is written again when the entry is settled.
func (l *Ledger) written(w writing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = nil
	for key := range w.keys {
		if _, changed := l.dirty[key]; changed {
			continue
		}
		if o := l.find(key); o == nil || !o.inBatch {
			delete(l.items, key)
		}
	}
	if w.settled {
		l.batch = nil
		signal(l.wake)
	}
}

func (l *Ledger) giveBack(w writing, err error, blocked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range w.keys {
		l.markDirty(key)
	}
	l.headDirty = l.headDirty || w.head
	if blocked {
		l.blocked = err
	}
	l.room.Broadcast()
}
