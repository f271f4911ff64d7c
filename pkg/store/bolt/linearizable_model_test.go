// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// keyCount is small, so that clients conflict often.
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

// call is a request of a client.
type call struct {
	Kind string
	Key  int
	// Value is the value to write. It is unique.
	Value int64
	// Expect is the mod revision that a compare-and-set expects.
	Expect int64
	// Serializable reads may return stale data from an etcd with several members, but not from a store with one copy.
	Serializable bool
}

func (c call) reads() bool { return c.Kind == callGet || c.Kind == callRange }

// result is the response to a call.
type result struct {
	// Unknown is true if no response was received: the call took effect or it did not.
	Unknown bool
	// Revision is the revision of the store after the call.
	Revision int64
	// Succeeded is false for a compare-and-set that found another revision, and for a delete of a missing key.
	Succeeded bool
	// Keys are the states that a read returned or a write replaced.
	Keys [keyCount]keyState
}

// keyState is the state of a key, zero if it does not exist.
type keyState struct {
	Value, Mod, Create, Version int64
}

// storeState is the state of the whole store.
type storeState struct {
	revision int64
	cells    [keyCount]keyState
}

// do returns the state and the result of a call on a store without concurrency.
func (w storeState) do(c call) (storeState, result) {
	a := result{Succeeded: true}
	switch c.Kind {
	case callPut:
		a.Keys[c.Key] = w.cells[c.Key]
		w.put(c.Value, c.Key)
	case callPutAll:
		a.Keys = w.cells
		w.put(c.Value, 0, 1, 2)
	case callCompareAndSet:
		a.Keys[c.Key] = w.cells[c.Key]
		if a.Succeeded = w.cells[c.Key].Mod == c.Expect; a.Succeeded {
			w.put(c.Value, c.Key)
		}
	case callDelete:
		a.Keys[c.Key] = w.cells[c.Key]
		if a.Succeeded = w.cells[c.Key].Mod != 0; a.Succeeded {
			w.revision++
			w.cells[c.Key] = keyState{}
		}
	case callGet:
		a.Keys[c.Key] = w.cells[c.Key]
	case callRange:
		a.Keys = w.cells
	}
	a.Revision = w.revision
	return w, a
}

func (w *storeState) put(value int64, keys ...int) {
	w.revision++
	for _, key := range keys {
		held := &w.cells[key]
		if held.Mod == 0 {
			held.Create = w.revision
		}
		held.Value, held.Mod, held.Version = value, w.revision, held.Version+1
	}
}

// specification is the model that histories are checked against.
var specification = porcupine.NondeterministicModel{
	Init: func() []any { return []any{storeState{revision: 1}} },
	Step: func(state, input, output any) []any {
		before, got := state.(storeState), output.(result)
		after, expected := before.do(input.(call))
		switch {
		case !got.Unknown && got != expected:
			return nil
		case got.Unknown && after != before:
			return []any{before, after}
		default:
			return []any{after}
		}
	},
}

// checkLimit is much longer than checking a history takes: the results determine the order of nearly all calls.
const checkLimit = time.Minute

// linearizable reports whether a sequential store returns the same results for some order of all calls. The order must
// keep that of calls which did not overlap.
func linearizable(t *testing.T, history []porcupine.Event) bool {
	t.Helper()
	result := porcupine.CheckEventsTimeout(specification.ToModel(), history, checkLimit)
	if result == porcupine.Unknown {
		t.Fatalf("a history of %d events was not checked within %s", len(history), checkLimit)
	}
	return result == porcupine.Ok
}
