// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Seeding decides between a list and the changes that a watch brings while it is read: which of the two is to be
// applied for an object, and which objects that were known before have gone. It begins when Handler.Listed is called.
// It may be dropped when Gone has been asked for all objects and the watch has come past the resourceVersion of the
// list; until then the watch may repeat what the list has already told.
//
// It has no lock: the lock under which a consumer applies changes and listed objects, one at a time, covers it too.
type Seeding struct {
	// changed holds the objects of which the watch has told. Whatever the list says about them is older, or comes
	// through the watch again: above all, a page read before a deletion must not bring the object back.
	changed map[types.NamespacedName]struct{}
	// listed holds the resourceVersion of the objects that the list has told.
	listed map[types.NamespacedName]string
}

// NewSeeding returns a Seeding for one list.
func NewSeeding() *Seeding {
	return &Seeding{changed: map[types.NamespacedName]struct{}{}, listed: map[types.NamespacedName]string{}}
}

// Changed takes note of a change and says whether it is to be applied: not when it is older than what the list has
// told, which would take the object back to an earlier state for a moment.
func (s *Seeding) Changed(change Change) (apply bool) {
	name := nameOf(change.Object)
	if listed, ok := s.listed[name]; ok && !newer(change.Object.GetResourceVersion(), listed) {
		return false
	}
	s.changed[name] = struct{}{}
	return true
}

// newer holds for versions that cannot be compared too: changes come in order, so that the last one is right.
func newer(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err != nil || order > 0
}

// Listed takes note of an object of the list and says whether it is to be applied: not when the watch has told of it.
func (s *Seeding) Listed(object *unstructured.Unstructured) (apply bool) {
	name := nameOf(object)
	if _, changed := s.changed[name]; changed {
		return false
	}
	s.listed[name] = object.GetResourceVersion()
	return true
}

// Gone says, after the whole list has been read without an error, whether an object that the consumer knew before no
// longer exists: neither the list nor the watch has told of it.
func (s *Seeding) Gone(name types.NamespacedName) bool {
	_, listed := s.listed[name]
	_, changed := s.changed[name]
	return !listed && !changed
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
