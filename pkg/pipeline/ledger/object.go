// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// sinkState is what the sink has of an object.
type sinkState uint8

const (
	// unsent: the object was in no batch yet, or its removal was delivered.
	unsent sinkState = iota
	// delivered: the sink has the object with the digest.
	delivered
	// rejected: the sink rejected the object with the digest. What it has is unknown.
	rejected
	// rejectedRemoval: the sink rejected the removal of the object.
	rejectedRemoval
	// unknown: the last result is superseded, or the row could not be read.
	unknown
	// tooLarge: the object with the digest does not fit into a row. It is never sent.
	tooLarge

	numStates
)

// object is the state of an object in memory. There can be a hundred thousand.
type object struct {
	// digest is the digest of what the sink received.
	digest  [16]byte
	pending *pending
	// size is the size of the item of a pending or rejected upsert.
	size  uint32
	state sinkState
	// inBatch reports whether the current batch has an entry for the object.
	inBatch bool
	// changed reports whether the object has changed since its row was encoded.
	changed bool
}

// pending is a change that was not sent.
type pending struct {
	key item.Key
	// remove reports whether the object was deleted; otherwise digest is the digest of its item.
	remove bool
	digest [16]byte
	// force sends the change even if the sink already has it.
	force bool
	// expedited reports whether the change was requested and skips the debounce.
	expedited bool
	// inRun reports whether the change counts for the run.
	inRun bool
	// first is when the first change was reported, due when it can be sent. order breaks ties.
	first, due time.Time
	order      uint64
	// index is the position in its heap.
	index int
}

// objectType and objectName are the parts of a key. Many objects share the first.
type objectType struct {
	kind                   item.Kind
	apiVersion, objectKind string
}

type objectName struct{ namespace, name string }

func split(key item.Key) (objectType, objectName) {
	return objectType{key.Kind, key.APIVersion, key.ObjectKind}, objectName{key.Namespace, key.Name}
}

func join(of objectType, name objectName) item.Key {
	return item.Key{Kind: of.kind, APIVersion: of.apiVersion, ObjectKind: of.objectKind, Namespace: name.namespace, Name: name.name}
}

// find returns an object, or nil.
func (l *Ledger) find(key item.Key) *object {
	of, name := split(key)
	return l.objects[of][name]
}

// add returns an object, and creates it if it does not exist.
func (l *Ledger) add(key item.Key) *object {
	of, name := split(key)
	objects := l.objects[of]
	if objects == nil {
		objects = map[objectName]*object{}
		l.objects[of] = objects
	}
	o := objects[name]
	if o == nil {
		o = &object{}
		objects[name] = o
		l.stateCounts[unsent]++
	}
	return o
}

// forget deletes an object and its row.
func (l *Ledger) forget(key item.Key) {
	of, name := split(key)
	l.stateCounts[l.objects[of][name].state]--
	if delete(l.objects[of], name); len(l.objects[of]) == 0 {
		delete(l.objects, of)
	}
	l.buffer.Add(key, rowBytes)
}

// setState records what the sink has of an object.
func (l *Ledger) setState(o *object, state sinkState, digest [16]byte) {
	l.stateCounts[o.state]--
	l.stateCounts[state]++
	o.state, o.digest = state, digest
}

// knows reports whether the sink has an object with a digest. Entries of the batch count as delivered.
func (l *Ledger) knows(o *object, key item.Key, digest [16]byte) bool {
	if o.inBatch {
		e := l.batch.entries[key]
		return !e.remove && e.digest == digest
	}
	switch o.state {
	case delivered, tooLarge:
		return o.digest == digest
	case rejected: // A pending change would mean that it has changed since.
		return o.digest == digest && o.pending == nil
	}
	return false
}

// mayHave reports whether the sink may have the object once the batch is settled. A rejected removal is not sent again.
func (l *Ledger) mayHave(o *object, key item.Key) bool {
	if o.inBatch {
		return !l.batch.entries[key].remove
	}
	return o.state != unsent && o.state != rejectedRemoval
}
