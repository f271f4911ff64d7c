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

// DefaultCapacity is how many changes there may be over all namespaces.
const DefaultCapacity = 10_000

// ResyncReason is why a whole namespace is to be compared with what is recorded.
type ResyncReason string

const (
	// Overflow says that there were more changes than there is room for.
	Overflow ResyncReason = "overflow"
	// Missed says that a catalog could not be brought up to date with a batch.
	Missed ResyncReason = "missed"
	// Relisted says that a watch has begun, or begun again: what happened before is not known.
	Relisted ResyncReason = "relisted"
	// Requested says that somebody asked for it.
	Requested ResyncReason = "requested"
	// Unreadable says that rows could not be read at the start.
	Unreadable ResyncReason = "unreadable"
)

// Config is what an intake works with.
type Config struct {
	// Clock says when events come.
	Clock clock.Clock
	// Capacity is how many changes there may be; 0 means DefaultCapacity.
	Capacity int
	// Metrics tell how it is; nil: nobody is told.
	Metrics *Metrics
}

// Intake gathers events into batches. It may be used concurrently. There is one at a time for a table: that of the replica
// that leads.
type Intake struct {
	table    *storetable.Table
	clock    clock.Clock
	capacity int
	metrics  *Metrics
	// wake makes Run publish news.
	wake chan struct{}

	// mu guards what follows. It is not held during writes.
	mu sync.Mutex
	// buffer has what the store does not have as it is.
	buffer *storetable.Buffer[unwritten]
	// namespaces have their batches, the oldest first. All but the last one are closed, or were when a process died.
	namespaces map[string][]*batch
	// changes counts those of all batches.
	changes int
	news    news
}

// Add takes events up. It does not wait: Run makes them durable a moment later.
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
		if !i.makeRoom(b) {
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

// Look has objects read with the batch that is open although nothing has told that they have changed. Those that have are as they
// were. Like Add it does not wait.
func (i *Intake) Look(objects ...Object) {
	now := i.clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, object := range objects {
		b := i.open(object.Namespace, now)
		if b.changes[object] == nil && i.makeRoom(b) {
			b.changes[object] = &Change{Object: object, First: now, Last: now}
			i.writeChange(b, object)
			i.changes++
		}
	}
	i.measure()
}

// Resync says that a namespace is to be compared with what is recorded. Changes that are known stay known. Like Add it does
// not wait.
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

// open returns the open batch of a namespace, a new one if need be.
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
	i.news.opened.Insert(namespace)
	i.notify()
	return b
}

// notify makes Run publish news.
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

// Due says how long it is until the next batch of a namespace is to be closed: 0 when its first event was a window ago, and
// for one that is closed and not done. False says that there is none.
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
		// The clock has been put back: without this, the batch would wait for as long as that was.
		b.opened = now
	}
	return max(0, window-now.Sub(b.opened)), true
}

// Close closes the oldest batch of a namespace, however old it is, and returns it; false says that there is none. A batch
// that is closed already, and not done, is returned again as it is. When Close fails, the batch is closed nevertheless, but
// not durable, and Close is to be called again.
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

// Done forgets a batch: it is recorded, or nobody wants it any more. When it fails, it is to be called again.
func (i *Intake) Done(ctx context.Context, done Batch) error {
	return i.buffer.Exclusive(ctx, func(ctx context.Context) error {
		b := i.find(done)
		if b == nil {
			return nil
		}
		if err := i.table.DeleteRange(ctx, b.key(), b.rowsEnd()); err != nil {
			return fmt.Errorf("forget batch %s of namespace %s: %w", done.ID, done.Namespace, err)
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
