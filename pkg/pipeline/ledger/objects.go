// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// objects finds the objects of a ledger by key, and counts them by state.
type objects struct {
	byType map[objectType]map[objectName]*object
	counts [numStates]int
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

func newObjects() *objects { return &objects{byType: map[objectType]map[objectName]*object{}} }

// find returns an object, or nil.
func (s *objects) find(key item.Key) *object {
	of, name := split(key)
	return s.byType[of][name]
}

// add returns an object, and creates it if it does not exist.
func (s *objects) add(key item.Key) *object {
	of, name := split(key)
	ofType := s.byType[of]
	if ofType == nil {
		ofType = map[objectName]*object{}
		s.byType[of] = ofType
	}
	o := ofType[name]
	if o == nil {
		o = &object{}
		ofType[name] = o
		s.counts[unsent]++
	}
	return o
}

// remove removes an object that exists.
func (s *objects) remove(key item.Key) {
	of, name := split(key)
	s.counts[s.byType[of][name].state]--
	if delete(s.byType[of], name); len(s.byType[of]) == 0 {
		delete(s.byType, of)
	}
}

// setState records what the sink has of an object.
func (s *objects) setState(o *object, state sinkState, digest [16]byte) {
	s.counts[o.state]--
	s.counts[state]++
	o.state, o.digest = state, digest
}

// all returns all objects. The caller may remove them meanwhile.
func (s *objects) all() iter.Seq2[item.Key, *object] {
	return func(yield func(item.Key, *object) bool) {
		for of, ofType := range s.byType {
			for name, o := range ofType {
				if !yield(join(of, name), o) {
					return
				}
			}
		}
	}
}
