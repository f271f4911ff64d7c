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
	// pace is the least time between two writes of what has come.
	pace = 100 * time.Millisecond
	// crowd is how many objects wait to be written before Upsert waits for that.
	crowd = 4096
	// patience bounds the last write, when the process ends.
	patience = 5 * time.Second
)

// Run makes durable what comes until ctx ends, and then what is left. What fails is tried again, and Counts tells why it did.
func (l *Ledger) Run(ctx context.Context) {
	l.setRunning(true)
	defer l.setRunning(false)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.unwritten:
			l.writeAll(ctx)
			pause(ctx, pace, l.crowded)
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := l.Flush(rest); err != nil {
		klog.FromContext(ctx).Error(err, "What a sink is to be told is left to the next list")
	}
}

func (l *Ledger) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
	l.room.Broadcast()
}

// writeAll writes what is not durable, as often as it takes or until ctx ends.
func (l *Ledger) writeAll(ctx context.Context) {
	backoff := wait.Backoff{Duration: pace, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	for ctx.Err() == nil {
		err := l.Flush(ctx)
		if err == nil {
			return
		}
		klog.FromContext(ctx).Error(err, "What a sink is to be told cannot be kept, trying again")
		pause(ctx, backoff.Step(), nil)
	}
}

// pause waits for a while, or until it is woken. It is the disk that is waited for, whatever time it is for anybody else.
func pause(ctx context.Context, length time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// awaitRoom waits while much waits to be written, as long as there is hope.
func (l *Ledger) awaitRoom() {
	for len(l.dirty) >= crowd && l.running && l.blocked == nil {
		poke(l.crowded)
		l.room.Wait()
	}
}

// Flush makes durable what has come.
func (l *Ledger) Flush(ctx context.Context) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	return l.write(ctx)
}

func (l *Ledger) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Ledger) endTurn() { <-l.turn }

// write makes everything durable. Whoever calls it has the turn. When it fails, it may have done a part, and nothing counts as durable.
func (l *Ledger) write(ctx context.Context) error {
	w := l.take()
	err := l.config.Table.Put(ctx, w.rows...)
	if err == nil {
		err = l.config.Table.Delete(ctx, w.gone...)
	}
	if err != nil {
		l.giveBack(w, err, ctx.Err() == nil)
		return fmt.Errorf("write what a sink is to be told: %w", err)
	}
	l.written(w)
	return nil
}

// writing is what is being written.
type writing struct {
	// rows are those of objects, and then that of the batch, which must not be there before them. gone are the keys of rows to remove.
	rows []table.Row
	gone []string
	keys map[item.Key]struct{}
	// head says that the row of the batch is among them, settled that all of the batch is settled.
	head, settled bool
}

// take returns what is not durable, and counts it as durable.
func (l *Ledger) take() writing {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := writing{keys: l.dirty, head: l.headDirty, settled: l.headDirty && l.frozen != nil && l.frozen.left == 0}
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

// written forgets the items that are in rows now. What is pending while another change of the object is in the batch stays: its row is
// written again when that is settled.
func (l *Ledger) written(w writing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = nil
	for key := range w.keys {
		if _, changed := l.dirty[key]; changed {
			continue
		}
		if o := l.find(key); o == nil || !o.frozen {
			delete(l.items, key)
		}
	}
	if w.settled {
		l.frozen = nil
		poke(l.wake)
	}
}

func (l *Ledger) giveBack(w writing, err error, blocked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range w.keys {
		l.soil(key)
	}
	l.headDirty = l.headDirty || w.head
	if blocked {
		l.blocked = err
	}
	l.room.Broadcast()
}
