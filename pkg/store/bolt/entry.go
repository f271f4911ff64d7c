// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// An entry of the journal is a batch: the revision that it begins at, and what was
// done, each an operation (1 byte) and its operands (numbers as uvarint, texts
// with their length before them). Whatever was decided on the way, by comparing, by a clock or
// by chance, is in it as it came out: doing the same to the same state
// gives the same state. Counters, history and earlier values follow from the state and are not in it.
const (
	opPut         = 1 // key, lease, value
	opDelete      = 2 // key
	opSeal        = 3 // ends the changes that share a revision
	opLease       = 4 // lease, time to live, expiry
	opDropLease   = 5 // lease
	opCompact     = 6 // revision
	opDropSegment = 7 // segment of the log
	opAdvance     = 8 // revision
)

// newEntry begins the entry of a batch in a buffer that is no longer used.
func newEntry(buffer []byte, revision int64) []byte {
	return appendVarint(append(buffer[:0], make([]byte, journal.HeaderSize)...), revision)
}

// note adds an operation to the entry of the batch; its operands follow.
func (w *writer) note(op byte, numbers ...int64) {
	w.changed = true
	w.entry = append(w.entry, op)
	for _, n := range numbers {
		w.noteNumber(n)
	}
}

func (w *writer) noteNumber(n int64) {
	w.entry = appendVarint(w.entry, n)
}

func (w *writer) noteText(text []byte) {
	w.noteNumber(int64(len(text)))
	w.entry = append(w.entry, text...)
}

// replay does what an entry says.
func (w *writer) replay(entry []byte) error {
	d := decoder{rest: entry}
	if revision := d.varint(); revision != w.revision {
		return fmt.Errorf("an entry for revision %d at revision %d: %w", revision, w.revision, errCorrupt)
	}
	for len(d.rest) > 0 {
		if err := w.replayOperation(&d); err != nil {
			return err
		}
		if d.short {
			return fmt.Errorf("an entry at revision %d: %w", w.revision, errCorrupt)
		}
	}
	return w.seal()
}

func (w *writer) replayOperation(d *decoder) error {
	switch op := d.take(1)[0]; op {
	case opPut:
		return w.replayPut(d)
	case opDelete:
		return w.replayDelete(d)
	case opSeal:
		w.endMutation()
		return nil
	case opLease:
		return w.putLease(d.varint(), d.varint(), d.varint())
	case opDropLease:
		return w.deleteLease(d.varint())
	case opCompact:
		w.compactTo(d.varint())
		return nil
	case opDropSegment:
		return w.dropSegment(d.varint())
	case opAdvance:
		w.advanceTo(d.varint())
		return nil
	default:
		return fmt.Errorf("operation %d at revision %d: %w", op, w.revision, errCorrupt)
	}
}

func (w *writer) replayPut(d *decoder) error {
	key := d.take(d.varint())
	lease := d.varint()
	value := d.take(d.varint())
	if d.short {
		return nil
	}
	return w.put(key, value, lease, w.lookup(key))
}

func (w *writer) replayDelete(d *decoder) error {
	key := d.take(d.varint())
	if d.short {
		return nil
	}
	previous := w.lookup(key)
	if previous == nil {
		return fmt.Errorf("a delete of key %q, which is not there, at revision %d: %w", key, w.revision, errCorrupt)
	}
	return w.remove(previous)
}
