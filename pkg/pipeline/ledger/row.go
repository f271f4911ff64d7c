// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Operations in rows.
const (
	upsert = "upsert"
	remove = "remove"
)

// stateNames are the names of states in rows.
var stateNames = [numStates]string{
	unsent: "", delivered: "delivered", rejected: "rejected", rejectedRemoval: "rejectedRemoval", unknown: "unknown", tooLarge: "tooLarge",
}

// row is the stored form of an object: a line of JSON, followed by the item of a pending or rejected upsert.
type row struct {
	State  string `json:"state,omitempty"`
	Digest []byte `json:"digest,omitempty"`
	// Settled is the sequence of the current batch, if the object's entry in it is settled.
	Settled       int64  `json:"settled,omitempty"`
	Pending       string `json:"pending,omitempty"`
	PendingDigest []byte `json:"pendingDigest,omitempty"`

	state sinkState
	item  []byte
}

// encodeRow returns the row of an object. b is the current batch, nil if there is none; its entry is stored as pending, unless there is a
// newer change. text is the item in memory of a pending change or a rejected object.
func encodeRow(key item.Key, o *object, b *batchState, text []byte) []byte {
	r := row{State: stateNames[o.state], item: text}
	if o.digest != [16]byte{} {
		r.Digest = o.digest[:]
	}
	p := o.pending
	if b != nil {
		e := b.entries[key]
		if e != nil && e.settled {
			r.Settled = b.sequence
		}
		if p == nil && o.inBatch {
			p, r.item = e.change, e.text
		}
	}
	switch {
	case p != nil && p.remove:
		r.Pending = remove
	case p != nil:
		r.Pending, r.PendingDigest = upsert, p.digest[:]
	}
	head, _ := json.Marshal(r) // A row can always be encoded.
	return append(append(head, '\n'), r.item...)
}

var (
	errMalformed = errors.New("it is not as this version writes it")
	errOtherItem = errors.New("its row has another item")
)

// decodeRow decodes the row of an object. It returns an unreadableError if it fails.
func decodeRow(value []byte) (row, error) {
	var r row
	head, text, _ := bytes.Cut(value, []byte("\n"))
	if err := json.Unmarshal(head, &r); err != nil {
		return row{}, &unreadableError{err}
	}
	found := false
	for of, name := range stateNames {
		if name == r.State {
			r.state, found = sinkState(of), true
		}
	}
	digests := len(r.Digest)%16 + len(r.PendingDigest)%16
	wellKnown := r.Pending == "" || r.Pending == remove || r.Pending == upsert && len(r.PendingDigest) == 16 && len(text) > 0
	if !found || digests != 0 || !wellKnown {
		return row{}, &unreadableError{errMalformed}
	}
	r.item = text
	return r, nil
}

// digestOf returns a stored digest, or a zero one if there is none.
func digestOf(stored []byte) (digest [16]byte) {
	copy(digest[:], stored)
	return digest
}

// head is the stored form of the batch.
type head struct {
	Sequence int64       `json:"sequence"`
	ID       string      `json:"id,omitempty"`
	At       time.Time   `json:"at,omitzero"`
	Kind     item.Kind   `json:"kind,omitempty"`
	Entries  []headEntry `json:"entries,omitempty"`
}

type headEntry struct {
	Key string `json:"key"`
	// Item is omitted for removals.
	Item json.RawMessage `json:"item,omitempty"`
}

// encodeHead returns the row of the batch: only its sequence, if there is no batch or all of it is settled.
func encodeHead(sequence int64, b *batchState) []byte {
	h := head{Sequence: sequence}
	if b != nil && b.left > 0 {
		h.ID, h.At, h.Kind = b.id, b.at, b.kind
		for e := range b.unsettled() {
			h.Entries = append(h.Entries, headEntry{e.change.key.String(), e.text})
		}
	}
	value, _ := json.Marshal(h) // The items are valid JSON.
	return value
}

// decodeHead returns the batch, nil if all of it is settled, and the sequence. It returns an unreadableError if it fails.
func decodeHead(value []byte) (*batchState, int64, error) {
	var h head
	if err := json.Unmarshal(value, &h); err != nil {
		return nil, 0, &unreadableError{err}
	}
	if len(h.Entries) == 0 {
		return nil, h.Sequence, nil
	}
	b := &batchState{id: h.ID, sequence: h.Sequence, at: h.At, kind: h.Kind, entries: map[item.Key]*entry{}, filled: true}
	for _, stored := range h.Entries {
		e, err := stored.decode(b.at)
		if err != nil {
			return nil, h.Sequence, &unreadableError{err}
		}
		b.add(e)
	}
	return b, h.Sequence, nil
}

func (s headEntry) decode(at time.Time) (*entry, error) {
	key, err := item.ParseKey(s.Key)
	if err != nil {
		return nil, err
	}
	change := &pending{key: key, remove: s.Item == nil, first: at, due: at}
	if change.remove {
		return &entry{change: change}, nil
	}
	read, err := item.Unmarshal(s.Item)
	if err != nil {
		return nil, fmt.Errorf("item of %s: %w", s.Key, err)
	}
	change.digest = read.Digest()
	return &entry{change: change, text: s.Item}, nil
}
