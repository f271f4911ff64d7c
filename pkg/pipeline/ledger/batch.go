// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Batch is what the sink is to be told of at once: CustomResourceDefinitions or instances, each object once.
type Batch struct {
	// ID is the same whenever the batch is handed out, before a restart and after, and that of no other batch.
	ID string
	// Sequence rises from batch to batch.
	Sequence int64
	// At is when the batch was put together.
	At   time.Time
	Kind item.Kind
	// Upserts are as they were then; Deletes are gone.
	Upserts []item.Item
	Deletes []item.Key
}

// frozen is a Batch until all of it is settled.
type frozen struct {
	id       string
	sequence int64
	at       time.Time
	kind     item.Kind
	// entries are what it tells of objects, in order those that are due first. left are not settled.
	entries map[item.Key]*entry
	order   []item.Key
	left    int
	// filled says that all items are there, and the batch can be written.
	filled bool
}

// entry is what a batch tells of an object.
type entry struct {
	*pending
	// text is the item; nil when the object is gone, or its item has not been read.
	text    []byte
	settled bool
}

func (f *frozen) add(e *entry) {
	f.entries[e.key] = e
	f.order = append(f.order, e.key)
	f.left++
}

// Next waits for a batch and returns it. One that has been returned and is not settled is returned again, as far as it is not. When Next
// fails, it is to be called again.
func (l *Ledger) Next(ctx context.Context) (Batch, error) {
	for {
		wait, some := l.untilBatch()
		if some && wait <= 0 {
			batch, err := l.hand(ctx)
			if err != nil {
				return Batch{}, fmt.Errorf("keep what the sink is to be told next: %w", err)
			}
			if len(batch.Upserts)+len(batch.Deletes) > 0 {
				return batch, nil
			}
			continue
		}
		if err := l.sleep(ctx, wait, some); err != nil {
			return Batch{}, err
		}
	}
}

// untilBatch says how long it may be until there is a batch. False says that nothing is pending.
func (l *Ledger) untilBatch() (least time.Duration, some bool) {
	maxItems, maxWait, now := l.config.MaxItems(), l.config.MaxWait(), l.config.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil {
		return 0, true
	}
	for _, q := range l.queues {
		if wait, has := q.untilBatch(now, maxItems, maxWait); has && (!some || wait < least) {
			least, some = wait, true
		}
	}
	return least, some
}

// sleep waits until something has changed, or for a while.
func (l *Ledger) sleep(ctx context.Context, wait time.Duration, some bool) error {
	var over <-chan time.Time
	if some {
		timer := l.config.Clock.NewTimer(wait)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.wake:
	case <-over:
	}
	return nil
}

// hand returns the batch that is handed out, and puts one together before if there is none. It is durable then. It has nothing in it
// when nothing is due.
func (l *Ledger) hand(ctx context.Context) (Batch, error) {
	if err := l.takeTurn(ctx); err != nil {
		return Batch{}, err
	}
	defer l.endTurn()
	maxItems := l.config.MaxItems()
	if l.thaw(maxItems) {
		if err := l.write(ctx); err != nil {
			return Batch{}, err
		}
	}
	l.freeze(maxItems)
	if err := l.fill(ctx); err != nil {
		return Batch{}, err
	}
	if err := l.write(ctx); err != nil {
		return Batch{}, err
	}
	failpoint.Reach("batch-frozen")
	return l.content(), nil
}

// kinds are those of batches. Definitions are first when there is no other order.
var kinds = [...]item.Kind{item.CustomResourceDefinition, item.Instance}

// freeze puts a batch together, of the kind of which something has been due for longest.
func (l *Ledger) freeze(maxItems int) {
	now := l.config.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil {
		return
	}
	var oldest *queue
	for _, kind := range kinds {
		q := l.queues[kind]
		if due := q.oldestDue(now); !due.IsZero() && (oldest == nil || due.Before(oldest.ready[0].due)) {
			oldest = q
		}
	}
	if oldest == nil {
		return
	}
	l.sequence++
	l.frozen = &frozen{
		id: string(uuid.NewUUID()), sequence: l.sequence, at: now, kind: oldest.ready[0].key.Kind, entries: map[item.Key]*entry{},
	}
	for size := 0; len(oldest.ready) > 0 && l.frozen.left < maxItems; {
		o := l.find(oldest.ready[0].key)
		if size += int(o.size) + len(oldest.ready[0].key.String()); size > l.config.MaxBytes && l.frozen.left > 0 {
			break
		}
		p := heap.Pop(&oldest.ready).(*pending)
		l.frozen.add(&entry{pending: p, text: l.items[p.key]})
		delete(l.items, p.key)
		o.pending, o.frozen = nil, true
	}
}

// fill reads the items of the batch that are not in memory.
func (l *Ledger) fill(ctx context.Context) error {
	for _, e := range l.unfilled() {
		text, err := l.read(ctx, e)
		if err == nil {
			l.mu.Lock()
			e.text = text
			l.mu.Unlock()
			continue
		}
		var unread *unreadableError
		if !errors.As(err, &unread) {
			return err
		}
		klog.FromContext(ctx).Error(err, "The sink is told of an object by the next list only", "object", e.key)
		l.giveUp(e)
	}
	l.seal()
	return nil
}

// seal lets the batch be written, which does not change any more.
func (l *Ledger) seal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil && !l.frozen.filled {
		l.frozen.filled, l.headDirty = true, true
	}
}

// unfilled are the entries whose items have not been read.
func (l *Ledger) unfilled() (out []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		return nil
	}
	for _, key := range l.frozen.order {
		if e := l.frozen.entries[key]; e.text == nil && !e.remove && !e.settled {
			out = append(out, e)
		}
	}
	return out
}

// read returns the item of an entry as its row has it.
func (l *Ledger) read(ctx context.Context, e *entry) ([]byte, error) {
	value, _, err := l.config.Table.Get(ctx, l.rowKey(e.key))
	var unopened *table.UnopenedError
	switch {
	case errors.As(err, &unopened):
		return nil, &unreadableError{err}
	case err != nil:
		return nil, err
	}
	row, err := decodeRow(value)
	if err != nil {
		return nil, err
	}
	there, err := item.Unmarshal(row.item)
	if err != nil || there.Digest() != e.digest {
		return nil, &unreadableError{fmt.Errorf("its row has no such item: %w", err)}
	}
	return row.item, nil
}

// giveUp takes an entry out of the batch that cannot be read: what the sink knows of the object is for the next list to find out.
func (l *Ledger) giveUp(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unreadable++
	l.settle(e, unknown)
}

// content is what of the batch is not settled.
func (l *Ledger) content() Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		return Batch{}
	}
	out := Batch{ID: l.frozen.id, Sequence: l.frozen.sequence, At: l.frozen.at, Kind: l.frozen.kind}
	for _, key := range l.frozen.order {
		switch e := l.frozen.entries[key]; {
		case e.settled:
		case e.remove:
			out.Deletes = append(out.Deletes, key)
		default:
			read, _ := item.Unmarshal(e.text) // It was read before, or made here.
			out.Upserts = append(out.Upserts, read)
		}
	}
	return out
}
