// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// DefaultCapacity is the default maximum number of changes in all namespaces.
const DefaultCapacity = 10_000

// ResyncReason is why a whole namespace must be compared with what is recorded.
type ResyncReason string

const (
	// Overflow means that the capacity was exceeded.
	Overflow ResyncReason = "overflow"
	// Missed means that a catalog could not be updated with a batch.
	Missed ResyncReason = "missed"
	// Relisted means that a watch has started or restarted, so events may have been missed.
	Relisted ResyncReason = "relisted"
	// Requested means that the caller has requested it.
	Requested ResyncReason = "requested"
	// Unreadable means that rows could not be decoded at the start.
	Unreadable ResyncReason = "unreadable"
)

// Config configures an intake.
type Config struct {
	// Clock is the source of the times of events; nil: the real clock.
	Clock clock.Clock
	// Capacity is the maximum number of changes; 0: DefaultCapacity.
	Capacity int
	// Metrics are the metrics of the intake; nil: none are registered.
	Metrics *Metrics
}

// Intake collects events in batches. It is safe for concurrent use. Only one intake may use a table at a time: that of the leader.
type Intake struct {
	table    *storetable.Table
	clock    clock.Clock
	capacity int
	metrics  *Metrics
	// wake makes Run publish notices.
	wake chan struct{}

	// mu guards the following fields. It is not held during writes.
	mu sync.Mutex
	// buffer has the rows that are not yet written in their current state.
	buffer *storetable.Buffer[unwritten]
	// namespaces are the batches by namespace, oldest first. Only the last one can be open.
	namespaces map[string][]*batch
	// changes is the number of changes in all batches.
	changes int
	notices notices
}

// Add adds events. It does not block: Run writes them shortly afterwards.
func (i *Intake) Add(events ...Event) {
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, event := range events {
		i.add(event, now)
	}
	i.measure()
}

func (i *Intake) add(event Event, now time.Time) {
	b := i.open(event.Namespace, now)
	change, found := b.changes[event.Object]
	if found {
		i.metrics.deduplicated.Inc()
	} else {
		if !i.reserve(b) {
			i.metrics.deduplicated.Inc()
			return
		}
		change = &Change{Object: event.Object, First: now}
		b.changes[event.Object] = change
		i.changes++
	}
	if change.merge(event, now) {
		i.writeChange(b, event.Object)
	}
}

// Include adds objects to the open batch without an event, so that they are read with it. Objects that are already in the batch do not
// change. Like Add it does not block.
func (i *Intake) Include(objects ...Object) {
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, object := range objects {
		b := i.open(object.Namespace, now)
		if b.changes[object] == nil && i.reserve(b) {
			b.changes[object] = &Change{Object: object, First: now, Last: now}
			i.writeChange(b, object)
			i.changes++
		}
	}
	i.measure()
}

// Resync requests that a namespace is compared with what is recorded. Known changes are kept. Like Add it does not block.
func (i *Intake) Resync(namespace string, reason ResyncReason) {
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	b := i.open(namespace, now)
	if !b.resync {
		b.resync = true
		i.writeHead(b)
		i.metrics.resyncs.WithLabelValues(string(reason)).Inc()
	}
	i.measure()
}

// open returns the open batch of a namespace. It creates one if there is none.
func (i *Intake) open(namespace string, now time.Time) *batch {
	batches := i.namespaces[namespace]
	number := uint64(now.UnixNano())
	if len(batches) > 0 {
		last := batches[len(batches)-1]
		if last.isOpen() {
			return last
		}
		number = max(number, last.number+1)
	}
	b := newBatch(namespace, number, now)
	i.namespaces[namespace] = append(batches, b)
	i.notices.opened.Insert(namespace)
	i.notify()
	return b
}

// notify makes Run publish notices.
func (i *Intake) notify() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// oldest returns the oldest batch of a namespace, nil if there is none.
func (i *Intake) oldest(namespace string) *batch {
	if batches := i.namespaces[namespace]; len(batches) > 0 {
		return batches[0]
	}
	return nil
}

// Due returns the time until the next batch of a namespace must be closed. It is 0 if the window since the first event has passed, and
// for a closed batch that is not done. Due returns false if there is no batch.
func (i *Intake) Due(namespace string, window time.Duration) (time.Duration, bool) {
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	b := i.oldest(namespace)
	switch {
	case b == nil:
		return 0, false
	case !b.isOpen():
		return 0, true
	case b.opened.After(now):
		// The clock was set back. Without this, the batch would wait for that time in addition.
		b.opened = now
	}
	return max(0, window-now.Sub(b.opened)), true
}

// Close closes the oldest batch of a namespace, regardless of its age, and returns it. It returns false if there is none. A batch that is
// already closed, and not done, is returned again unchanged. If Close fails, the batch is closed but not durable, and Close must be called
// again.
func (i *Intake) Close(ctx context.Context, namespace string) (Batch, bool, error) {
	i.mu.Lock()
	b := i.oldest(namespace)
	if b != nil && b.isOpen() {
		b.id = string(uuid.NewUUID())
		i.writeHead(b)
		i.metrics.closed.Inc()
	}
	i.mu.Unlock()
	if b == nil {
		return Batch{}, false, nil
	}
	if err := i.buffer.Flush(ctx); err != nil {
		return Batch{}, false, fmt.Errorf("close the batch of namespace %s: %w", namespace, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return b.content(), true, nil
}

// Done deletes a batch that has been recorded, or is no longer needed. If it fails, it must be called again.
func (i *Intake) Done(ctx context.Context, done Batch) error {
	return i.buffer.Exclusive(ctx, func(ctx context.Context) error {
		b := i.find(done)
		if b == nil {
			return nil
		}
		if err := i.table.DeleteRange(ctx, b.key(), b.rowsEnd()); err != nil {
			return fmt.Errorf("delete batch %s of namespace %s: %w", done.ID, done.Namespace, err)
		}
		i.forget(b)
		return nil
	})
}

// find returns a closed batch, nil if it is done.
func (i *Intake) find(closed Batch) *batch {
	i.mu.Lock()
	defer i.mu.Unlock()
	batches := i.namespaces[closed.Namespace]
	if at := slices.IndexFunc(batches, func(b *batch) bool { return b.id == closed.ID && !b.isOpen() }); at >= 0 {
		return batches[at]
	}
	return nil
}

func (i *Intake) forget(b *batch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := slices.DeleteFunc(i.namespaces[b.namespace], func(other *batch) bool { return other == b })
	if i.namespaces[b.namespace] = left; len(left) == 0 {
		delete(i.namespaces, b.namespace)
	}
	i.changes -= len(b.changes)
	i.measure()
}
