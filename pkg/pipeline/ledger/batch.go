// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// batchState is the current batch, until all of its entries are settled.
type batchState struct {
	id       string
	sequence int64
	at       time.Time
	kind     item.Kind
	// entries are the changes by object. order lists them, the earliest due first. left counts those that are not settled.
	entries map[item.Key]*entry
	order   []*entry
	left    int
	// filled reports whether all items are loaded, so that the batch can be written.
	filled bool
}

// entry is the change of one object in a batch.
type entry struct {
	change *pending
	// text is the encoded item. It is nil for a removal, and until the item is loaded.
	text    []byte
	settled bool
}

// newBatch returns an empty batch with a new ID.
func newBatch(sequence int64, at time.Time, kind item.Kind) *batchState {
	return &batchState{id: string(uuid.NewUUID()), sequence: sequence, at: at, kind: kind, entries: map[item.Key]*entry{}}
}

func (b *batchState) add(e *entry) {
	b.entries[e.change.key] = e
	b.order = append(b.order, e)
	b.left++
}

// settle ends an unsettled entry. Its item is not needed any more.
func (b *batchState) settle(e *entry) {
	e.settled, e.text = true, nil
	b.left--
}

// entryOf returns the unsettled entry of an object, nil if there is none. There may be no batch then.
func (b *batchState) entryOf(o *object, key item.Key) *entry {
	if !o.inBatch {
		return nil
	}
	return b.entries[key]
}

// unsettled returns the entries that are not settled, in order. The caller may settle them meanwhile.
func (b *batchState) unsettled() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range b.order {
			if !e.settled && !yield(e) {
				return
			}
		}
	}
}

// withoutItem returns the unsettled entries whose items are not loaded.
func (b *batchState) withoutItem() (out []*entry) {
	for e := range b.unsettled() {
		if e.text == nil && !e.change.remove {
			out = append(out, e)
		}
	}
	return out
}

// content returns the unsettled entries.
func (b *batchState) content() item.Batch {
	out := item.Batch{ID: b.id, Sequence: b.sequence, At: b.at, Kind: b.kind}
	for e := range b.unsettled() {
		if e.change.remove {
			out.Deletes = append(out.Deletes, e.change.key)
			continue
		}
		read, _ := item.Unmarshal(e.text) // It was decoded before, or encoded here.
		out.Upserts = append(out.Upserts, read)
	}
	return out
}
