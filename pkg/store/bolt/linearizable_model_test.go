// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// keyCount is small, so that clients meet on keys.
const keyCount = 3

// Kinds of calls.
const (
	callPut           = "put"
	callPutAll        = "put all" // of every key, in one transaction
	callCompareAndSet = "compare and set"
	callDelete        = "delete"
	callGet           = "get"
	callRange         = "range" // of every key
)

// call is what a client asks for.
type call struct {
	Kind string
	Key  int
	// Value is what to write. No two calls write the same.
	Value int64
	// Expect is the revision of the last change that a compare-and-set takes for granted.
	Expect int64
	// Serializable reads may be answered from the past by an etcd of several members, not by a store that has one copy.
	Serializable bool
}

func (c call) reads() bool { return c.Kind == callGet || c.Kind == callRange }

// answer is a response to a client.
type answer struct {
	// Unknown means that the client was not answered: the call had its effect or not.
	Unknown bool
	// Revision is the store's after the call.
	Revision int64
	// Succeeded is false for a compare-and-set that found another revision, and a delete that found nothing.
	Succeeded bool
	// Cells are what a read found, and what a write replaced.
	Cells [keyCount]cell
}

// cell is what a key holds, zero if it does not exist.
type cell struct {
	Value, Mod, Create, Version int64
}

// world is the whole state of a store.
type world struct {
	revision int64
	cells    [keyCount]cell
}

// do is what a store is: what a call does, and how it is answered, when there is no other.
func (w world) do(c call) (world, answer) {
	a := answer{Succeeded: true}
	switch c.Kind {
	case callPut:
		a.Cells[c.Key] = w.cells[c.Key]
		w.put(c.Value, c.Key)
	case callPutAll:
		a.Cells = w.cells
		w.put(c.Value, 0, 1, 2)
	case callCompareAndSet:
		a.Cells[c.Key] = w.cells[c.Key]
		if a.Succeeded = w.cells[c.Key].Mod == c.Expect; a.Succeeded {
			w.put(c.Value, c.Key)
		}
	case callDelete:
		a.Cells[c.Key] = w.cells[c.Key]
		if a.Succeeded = w.cells[c.Key].Mod != 0; a.Succeeded {
			w.revision++
			w.cells[c.Key] = cell{}
		}
	case callGet:
		a.Cells[c.Key] = w.cells[c.Key]
	case callRange:
		a.Cells = w.cells
	}
	a.Revision = w.revision
	return w, a
}

func (w *world) put(value int64, keys ...int) {
	w.revision++
	for _, key := range keys {
		held := &w.cells[key]
		if held.Mod == 0 {
			held.Create = w.revision
		}
		held.Value, held.Mod, held.Version = value, w.revision, held.Version+1
	}
}

// specification returns the states that may follow one, given a client's request and its response.
var specification = porcupine.NondeterministicModel{
	Init: func() []any { return []any{world{revision: 1}} },
	Step: func(state, input, output any) []any {
		before, told := state.(world), output.(answer)
		after, expected := before.do(input.(call))
		switch {
		case !told.Unknown && told != expected:
			return nil
		case told.Unknown && after != before:
			return []any{before, after}
		default:
			return []any{after}
		}
	},
}

// checkLimit is longer than checking a history takes: the responses determine the order of nearly all calls.
const checkLimit = time.Minute

// linearizable tells whether there is an order of all calls, true to the order in time of those that did not overlap,
// in which a store that does one after the other answers as it did.
func linearizable(t *testing.T, history []porcupine.Event) bool {
	t.Helper()
	result := porcupine.CheckEventsTimeout(specification.ToModel(), history, checkLimit)
	if result == porcupine.Unknown {
		t.Fatalf("a history of %d events was not checked within %s", len(history), checkLimit)
	}
	return result == porcupine.Ok
}
