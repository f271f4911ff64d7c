// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Batch is a set of changes that are sent together: of CustomResourceDefinitions or of instances, each object once.
type Batch struct {
	// ID is unique, and stays the same when the batch is returned again, also after a restart.
	ID string
	// Sequence increases with each batch.
	Sequence int64
	// At is when the batch was assembled.
	At   time.Time
	Kind item.Kind
	// Upserts are the objects as of that time. Deletes are the deleted ones.
	Upserts []item.Item
	Deletes []item.Key
}

// batchState is the current batch, until all of its entries are settled.
type batchState struct {
	id       string
	sequence int64
	at       time.Time
	kind     item.Kind
	// entries are the changes by object. order lists their keys, the earliest due first. left counts those that are not settled.
	entries map[item.Key]*entry
	order   []item.Key
	left    int
	// filled reports whether all items are loaded, so that the batch can be written.
	filled bool
}

// entry is the change of one object in a batch.
type entry struct {
	*pending
	// text is the encoded item. It is nil for a removal, and until the item is loaded.
	text    []byte
	settled bool
}

func (b *batchState) add(e *entry) {
	b.entries[e.key] = e
	b.order = append(b.order, e.key)
	b.left++
}

// entryOf returns the unsettled entry of an object, nil if there is none.
func (b *batchState) entryOf(o *object, key item.Key) *entry {
	if !o.inBatch {
		return nil
	}
	return b.entries[key]
}

// withoutItem returns the entries whose items are not loaded.
func (b *batchState) withoutItem() (out []*entry) {
	for _, key := range b.order {
		if e := b.entries[key]; e.text == nil && !e.remove && !e.settled {
			out = append(out, e)
		}
	}
	return out
}

// Next waits for a batch and returns it. It returns the entries of the current batch that are not settled, before it assembles another.
// After an error, the caller calls Next again.
func (l *Ledger) Next(ctx context.Context) (Batch, error) {
	for {
		wait, some := l.untilBatch()
		if some && wait <= 0 {
			batch, err := l.prepare(ctx)
			if err != nil {
				return Batch{}, fmt.Errorf("store the next batch: %w", err)
			}
			if len(batch.Upserts)+len(batch.Deletes) > 0 {
				return batch, nil
			}
			continue
		}
		if err := l.wake.sleep(ctx, wait, some); err != nil {
			return Batch{}, err
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
func (l *Ledger) prepare(ctx context.Context) (Batch, error) {
	maxItems := l.config.MaxItems()
	if l.dissolve(maxItems) {
		if err := l.Flush(ctx); err != nil {
			return Batch{}, err
		}
	}
	// A write would replace the rows with the items that are to be loaded.
	err := l.buffer.Exclusive(ctx, func(ctx context.Context) error {
		return l.fill(ctx, l.assemble(maxItems))
	})
	if err != nil {
		return Batch{}, err
	}
	if err := l.Flush(ctx); err != nil {
		return Batch{}, err
	}
	failpoint.Reach("batch-frozen")
	return l.content(), nil
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
	l.batch = &batchState{
		id: string(uuid.NewUUID()), sequence: l.sequence, at: now, kind: q.first().key.Kind, entries: map[item.Key]*entry{},
	}
	for size := 0; q.first() != nil && l.batch.left < maxItems; {
		p := q.first()
		o := l.objects.find(p.key)
		if size += int(o.size) + len(p.key.String()); size > l.config.MaxBytes && l.batch.left > 0 {
			break
		}
		q.pop()
		l.batch.add(&entry{pending: p, text: l.unwritten.takeItem(p.key)})
		o.pending, o.inBatch = nil, true
	}
	return l.batch.withoutItem()
}

// fill loads the items of entries of the batch from their rows, and allows the batch to be written: it does not change any more. An entry
// whose item can never be read is removed; the next list finds the object again.
func (l *Ledger) fill(ctx context.Context, entries []*entry) error {
	texts, err := l.rows.items(ctx, entries)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, text := range texts {
		if text == nil {
			l.unreadable++
			l.settle(entries[i], unknown)
		} else {
			entries[i].text = text
		}
	}
	if err == nil && l.batch != nil && !l.batch.filled {
		l.batch.filled = true
		l.unwritten.addHead()
	}
	return err
}

// content returns the entries of the batch that are not settled.
func (l *Ledger) content() Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		return Batch{}
	}
	out := Batch{ID: l.batch.id, Sequence: l.batch.sequence, At: l.batch.at, Kind: l.batch.kind}
	for _, key := range l.batch.order {
		switch e := l.batch.entries[key]; {
		case e.settled:
		case e.remove:
			out.Deletes = append(out.Deletes, key)
		default:
			read, _ := item.Unmarshal(e.text) // It was decoded before, or encoded here.
			out.Upserts = append(out.Upserts, read)
		}
	}
	return out
}
