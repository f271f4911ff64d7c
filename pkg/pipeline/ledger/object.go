// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// told is what the sink was told of an object last.
type told uint8

const (
	// nothing: the object has never been in a batch, or its removal was delivered.
	nothing told = iota
	// delivered: the sink has been told of the object with the digest.
	delivered
	// rejected: the sink would not be told of the object with the digest. What it has of it is not known.
	rejected
	// rejectedRemoval: the sink would not be told that the object is gone.
	rejectedRemoval
	// unknown: something that is superseded, or whose row could not be read.
	unknown
	// tooLarge: the object with the digest is one that no row can hold. It is never sent.
	tooLarge

	tallies
)

// object is what is kept of each object in memory. There may be a hundred thousand.
type object struct {
	// digest is that of what the sink was told.
	digest  [16]byte
	pending *pending
	// size is that of its item, when something is pending that has one, or was rejected.
	size uint32
	told told
	// frozen says that there is an entry for it in the batch.
	frozen bool
}

// pending is a change that the sink is to be told of.
type pending struct {
	key item.Key
	// remove says that the object is gone; otherwise digest is that of the item.
	remove bool
	digest [16]byte
	// again says that it is sent although the sink may have been told the same.
	again bool
	// prompt says that it has been asked for: it does not wait for the object to come to rest.
	prompt bool
	// marked says that it counts for the run.
	marked bool
	// first is when the first change came, due when the sink is to be told; order tells those apart that are due at the same time.
	first, due time.Time
	order      uint64
	// index is its place in the heap that it is in.
	index int
}

// objectType and objectName are the parts of a key: the first is shared by many objects.
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

// find returns an object, nil when nothing is known of it.
func (l *Ledger) find(key item.Key) *object {
	of, name := split(key)
	return l.objects[of][name]
}

// add returns an object that is new if nothing is known of it.
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
		l.tally[nothing]++
	}
	return o
}

// forget removes an object of which nothing is to be known any more, and its row.
func (l *Ledger) forget(key item.Key) {
	of, name := split(key)
	l.tally[l.objects[of][name].told]--
	if delete(l.objects[of], name); len(l.objects[of]) == 0 {
		delete(l.objects, of)
	}
	l.soil(key)
}

// tell notes what the sink was told.
func (l *Ledger) tell(o *object, what told, digest [16]byte) {
	l.tally[o.told]--
	l.tally[what]++
	o.told, o.digest = what, digest
}

// knows says whether the sink needs not be told of an object with a digest: what is in the batch is taken for delivered.
func (l *Ledger) knows(o *object, key item.Key, digest [16]byte) bool {
	if o.frozen {
		e := l.frozen.entries[key]
		return !e.remove && e.digest == digest
	}
	switch o.told {
	case delivered, tooLarge:
		return o.digest == digest
	case rejected: // It is as it was then, unless something else came between.
		return o.digest == digest && o.pending == nil
	}
	return false
}

// mayHave says whether the sink may have the object when the batch is settled. Of a removal that it has rejected it is not told again.
func (l *Ledger) mayHave(o *object, key item.Key) bool {
	if o.frozen {
		return !l.frozen.entries[key].remove
	}
	return o.told != nothing && o.told != rejectedRemoval
}
