// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// transactionTimeout bounds one attempt to write, for each transaction in it.
	transactionTimeout = 5 * time.Second

	// Delays between attempts to write to a store that fails.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// Writes are changes of rows. Rows are put first, in their order, then keys and ranges are deleted.
type Writes struct {
	Rows    []Row
	Deleted []string
	Ranges  []Range
}

// Range is the keys from one to before another.
type Range struct{ From, To string }

// BufferConfig configures a Buffer of items.
type BufferConfig[T comparable] struct {
	// Table receives the writes.
	Table *Table
	// Lock guards the items. The buffer uses it for its own state, too, so that the owner changes both at once.
	Lock sync.Locker
	// Clock measures Interval and the delay before a retry. The default is the real clock.
	Clock clock.Clock
	// MaxRows and MaxBytes bound the items, those being written included. Both are greater than 0.
	MaxRows, MaxBytes int
	// Interval is the least time between two writes, unless the buffer is half full.
	Interval time.Duration
	// DrainTimeout bounds the last write after the context of Run has ended. Without it, Run writes nothing then.
	DrainTimeout time.Duration
	// Encode returns the writes that make items durable as they are. It calls take once, with Lock held, and holds Lock
	// while it reads anything that can change.
	Encode func(take func() []T) Writes
	// Done is called after each attempt to write items, with Lock held. After an error the buffer still has all of them
	// that were not removed meanwhile. Optional.
	Done func(items []T, err error)
	// TooLarge is called with an item that the store refuses because of its size. The buffer drops it. Optional: without
	// it, such an item blocks the buffer.
	TooLarge func(item T)
	// Blocked is called by Run with the error of each failed attempt, and with nil when a retry has succeeded. Optional.
	Blocked func(err error)
}

// Buffer is a write-behind over a table. It collects items that are not stored as they are and writes them together.
//
// An item is anything that identifies a pending write. It is encoded when it is written: an object that changes many times
// between two writes is encoded and written once. Add neither blocks nor fails. An owner keeps the bounds either by
// waiting (WaitForRoom) or by dropping items (Over and Remove).
//
// Items stay in the buffer until they are durable. When a write fails, a part of it may be stored; all its items are
// written again, as they are then. There is one write at a time, so that a later one never stores an older state.
// A crash loses the items that are in the buffer.
type Buffer[T comparable] struct {
	config BufferConfig[T]
	lock   sync.Locker
	// added and crowded wake Run. Each has room for one signal.
	added, crowded chan struct{}
	// writer is held during a write. A channel, unlike a mutex, can be waited for with a context.
	writer chan struct{}

	// The lock guards what follows.

	// waiting are the items to write, and writing those of the write in progress.
	waiting, writing map[T]buffered
	// bytes is the size of both.
	bytes int
	// sequence numbers the items in the order of Add.
	sequence uint64
	// room is closed when items have left the buffer.
	room  chan struct{}
	level fillLevel
}

// buffered describes an item in the buffer.
type buffered struct {
	sequence uint64
	bytes    int
}

// NewBuffer returns an empty buffer.
func NewBuffer[T comparable](config BufferConfig[T]) *Buffer[T] {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	return &Buffer[T]{
		config: config, lock: config.Lock,
		added: make(chan struct{}, 1), crowded: make(chan struct{}, 1), writer: make(chan struct{}, 1),
		waiting: map[T]buffered{}, writing: map[T]buffered{}, room: make(chan struct{}),
		level: fillLevel{table: config.Table.name},
	}
}

// Add adds an item of a size, or notes that it has changed. An item that is being written is written once more.
// The caller holds the lock.
func (b *Buffer[T]) Add(item T, bytes int) {
	entry, found := b.waiting[item]
	if !found {
		b.sequence++
		entry.sequence = b.sequence
	}
	b.bytes += bytes - entry.bytes
	entry.bytes = bytes
	b.waiting[item] = entry
	b.changed()
	signal(b.added)
	if 2*b.rows() >= b.config.MaxRows || 2*b.bytes >= b.config.MaxBytes {
		signal(b.crowded)
	}
}

// Remove drops an item. It reports whether the item was not being written; otherwise it may become durable nevertheless.
// The caller holds the lock.
func (b *Buffer[T]) Remove(item T) bool {
	_, writing := b.writing[item]
	b.bytes -= b.waiting[item].bytes + b.writing[item].bytes
	delete(b.waiting, item)
	delete(b.writing, item)
	b.left()
	return !writing
}

// Over reports whether the buffer holds more than its bounds. The caller holds the lock.
func (b *Buffer[T]) Over() bool {
	return b.rows() > b.config.MaxRows || b.bytes > b.config.MaxBytes
}

// Full reports whether the buffer has reached one of its bounds. The caller holds the lock.
func (b *Buffer[T]) Full() bool {
	return b.rows() >= b.config.MaxRows || b.bytes >= b.config.MaxBytes
}

// WaitForRoom waits while the buffer is full. The error is that of ctx. The caller holds the lock, which is released
// while it waits.
func (b *Buffer[T]) WaitForRoom(ctx context.Context) error {
	for b.Full() {
		room := b.room
		b.lock.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		b.lock.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Flush makes durable what was added before it was called.
func (b *Buffer[T]) Flush(ctx context.Context) error { return b.Exclusive(ctx, b.write) }

// Exclusive calls write while the buffer itself writes nothing.
func (b *Buffer[T]) Exclusive(ctx context.Context, write func(context.Context) error) error {
	select {
	case b.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.writer }()
	return write(ctx)
}

// Run writes items until ctx ends: the first one at once, and every Interval what has been added meanwhile. A write that
// fails is retried until it succeeds. After ctx has ended Run attempts one last write, if DrainTimeout allows it.
func (b *Buffer[T]) Run(ctx context.Context) {
	b.setRunning(true)
	defer b.setRunning(false)
	for b.run(ctx) == nil {
	}
	if b.config.DrainTimeout == 0 {
		return
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.DrainTimeout)
	defer cancel()
	if err := b.Flush(drain); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to write buffered rows at shutdown", "table", b.config.Table.name)
	}
}

// run waits for items, writes them, and waits until the next write is due. The error is that of ctx.
func (b *Buffer[T]) run(ctx context.Context) error {
	select {
	case <-b.added:
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // Of several channels that are ready, select takes any.
		return ctx.Err()
	}
	next := b.config.Clock.NewTimer(b.config.Interval)
	defer next.Stop()
	if err := b.writeUntilDone(ctx); err != nil {
		return err
	}
	select {
	case <-next.C():
	case <-b.crowded:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// writeUntilDone writes what waits, as often as it takes. The error is that of ctx.
func (b *Buffer[T]) writeUntilDone(ctx context.Context) error {
	backoff := wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxRetryDelay}
	for failed := false; ; failed = true {
		err := b.Flush(ctx)
		switch {
		case err == nil && failed:
			b.blocked(nil)
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		klog.FromContext(ctx).Error(err, "Failed to write buffered rows, retrying", "table", b.config.Table.name)
		b.blocked(err)
		if err := b.pause(ctx, backoff.Step()); err != nil {
			return err
		}
	}
}

func (b *Buffer[T]) blocked(err error) {
	if b.config.Blocked != nil {
		b.config.Blocked(err)
	}
}

func (b *Buffer[T]) pause(ctx context.Context, delay time.Duration) error {
	timer := b.config.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// write writes what waits. The caller holds writer.
func (b *Buffer[T]) write(ctx context.Context) error {
	var items []T
	writes := b.config.Encode(func() []T {
		items = b.take()
		return items
	})
	if len(items) == 0 {
		return nil
	}
	err := b.apply(ctx, writes)
	if errors.Is(err, rpctypes.ErrRequestTooLarge) && b.config.TooLarge != nil {
		return b.writeEach(ctx, items)
	}
	b.done(items, err)
	return err
}

// writeEach writes items, at least one of which is too large, one by one.
func (b *Buffer[T]) writeEach(ctx context.Context, items []T) error {
	for i, item := range items {
		one := items[i : i+1]
		err := b.apply(ctx, b.config.Encode(func() []T { return one }))
		switch {
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			b.lock.Lock()
			b.Remove(item)
			b.lock.Unlock()
			b.config.TooLarge(item)
		case err != nil:
			b.done(items[i:], err)
			return err
		default:
			b.done(one, nil)
		}
	}
	return nil
}

// apply makes writes. Its error is that of ctx when ctx has ended.
func (b *Buffer[T]) apply(ctx context.Context, writes Writes) error {
	timeout := transactionTimeout * time.Duration(1+len(writes.Ranges)+(len(writes.Rows)+len(writes.Deleted))/MaxAtomicRows)
	attempt, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := b.config.Table.apply(attempt, writes)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case attempt.Err() != nil:
		return fmt.Errorf("no response within %v: %w", timeout, err)
	}
	return err
}

// apply makes writes. When it fails, it may have made some of them.
func (t *Table) apply(ctx context.Context, writes Writes) error {
	if err := t.Put(ctx, writes.Rows...); err != nil {
		return err
	}
	if err := t.Delete(ctx, writes.Deleted...); err != nil {
		return err
	}
	for _, keys := range writes.Ranges {
		if err := t.DeleteRange(ctx, keys.From, keys.To); err != nil {
			return err
		}
	}
	return nil
}

// take moves the items that wait to those being written, and returns them in the order of Add. The caller holds the lock.
func (b *Buffer[T]) take() []T {
	drain(b.added)
	drain(b.crowded)
	b.writing, b.waiting = b.waiting, map[T]buffered{}
	items := make([]T, 0, len(b.writing))
	for item := range b.writing {
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y T) int { return cmp.Compare(b.writing[x].sequence, b.writing[y].sequence) })
	return items
}

// done ends a write of items. After an error they wait again, with what was added meanwhile.
func (b *Buffer[T]) done(items []T, err error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, item := range items {
		was, kept := b.writing[item]
		delete(b.writing, item)
		again, added := b.waiting[item]
		if err == nil || !kept || added {
			b.bytes -= was.bytes
		}
		if err == nil || !kept {
			continue
		}
		if !added {
			again.bytes = was.bytes
		}
		again.sequence = was.sequence
		b.waiting[item] = again
	}
	if err != nil {
		signal(b.added)
	}
	b.left()
	if b.config.Done != nil {
		b.config.Done(items, err)
	}
}

func (b *Buffer[T]) rows() int { return len(b.waiting) + len(b.writing) }

// left wakes those who wait for room.
func (b *Buffer[T]) left() {
	close(b.room)
	b.room = make(chan struct{})
	b.changed()
}

func (b *Buffer[T]) changed() { b.level.set(b.rows(), b.bytes) }

func (b *Buffer[T]) setRunning(running bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.level.shown = running
	b.changed()
}

// signal wakes the receiver of a channel with room for one signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain removes a signal that is no longer needed.
func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
