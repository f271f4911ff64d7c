// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Seeding decides between a list and the changes that a watch brings while it is read: which objects of the list are
// news, and which known objects have gone. It begins when Handler.Listed is called and ends with the list.
//
// It has no lock: the lock under which a consumer applies changes and listed objects, one at a time, covers it too.
type Seeding struct {
	// changed holds the resourceVersion of the last change per object, deletions included: a page that was read before
	// a deletion must not bring the object back.
	changed map[types.NamespacedName]string
	listed  map[types.NamespacedName]struct{}
}

// NewSeeding returns a Seeding for one list.
func NewSeeding() *Seeding {
	return &Seeding{changed: map[types.NamespacedName]string{}, listed: map[types.NamespacedName]struct{}{}}
}

// Changed takes note of a change that the consumer applies.
func (s *Seeding) Changed(change Change) {
	s.changed[nameOf(change.Object)] = change.Object.GetResourceVersion()
}

// Listed takes note of an object of the list and says whether it is to be applied. It is not when the watch has
// already told something as new or newer about it.
func (s *Seeding) Listed(object *unstructured.Unstructured) (apply bool) {
	name := nameOf(object)
	s.listed[name] = struct{}{}
	changed, ok := s.changed[name]
	if !ok {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), changed)
	// Where versions cannot be compared the watch is right: its changes come in order, the list's place is unknown.
	return err == nil && order > 0
}

// Gone says, after the whole list has been read without an error, whether an object that the consumer knew before no
// longer exists: the list does not have it, and the watch has said nothing about it.
func (s *Seeding) Gone(name types.NamespacedName) bool {
	_, listed := s.listed[name]
	_, changed := s.changed[name]
	return !listed && !changed
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
