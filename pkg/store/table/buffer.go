// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// transactionTimeout bounds one attempt to write, for each transaction in it.
	transactionTimeout = 5 * time.Second

	// Delays between attempts to write to a store that fails.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// Writes are changes of rows. Rows are put first, in their order, then keys and ranges are deleted, and then the last rows are put, which
// describe the others.
type Writes struct {
	Rows    []Row
	Deleted []string
	Ranges  []Range
	Last    []Row
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

func (b *Buffer[T]) rows() int { return len(b.waiting) + len(b.writing) }

// left wakes the callers of WaitForRoom.
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
