// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verb is what is done to an object.
type Verb string

// What is done to objects.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Step is what is done to one object. Nothing of it is changed.
type Step struct {
	Verb Verb
	// Live is the object that the step was planned with, nil to create one. If it is another one by now, the step is not done.
	Live *unstructured.Unstructured
	// Removal is a JSON patch that is sent before Apply, nil if there is none. It may test the resourceVersion of Live.
	Removal []byte
	// Apply is what is applied, with force; nil to delete.
	Apply *unstructured.Unstructured
	// After is what becomes of the object. Where there is a Removal, it is what the dry run is about: what is applied on top
	// of it cannot be tried.
	After *unstructured.Unstructured
}

// String says what is done to what, and nothing of the content.
func (s Step) String() string {
	if subject := s.subject(); subject != nil {
		return string(s.Verb) + " " + objectOf(subject).String()
	}
	return string(s.Verb)
}

// GoString is String, so that no way of printing shows content.
func (s Step) GoString() string { return s.String() }

// Object tells objects of a cluster apart.
type Object struct {
	schema.GroupKind
	Namespace, Name string
}

// String is how people call the object.
func (o Object) String() string { return o.Kind + " " + o.Name }

func (o Object) isSecret() bool { return o.Group == "" && o.Kind == "Secret" }

func objectOf(u *unstructured.Unstructured) Object {
	return Object{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

// subject is what the step is about: what is applied, or what is deleted.
func (s Step) subject() *unstructured.Unstructured {
	if s.Verb == Delete {
		return s.Live
	}
	return s.Apply
}

// check refuses what is no step in the namespace.
func (s Step) check(namespace string) error {
	subject := s.subject()
	switch {
	case s.Verb != Create && s.Verb != Update && s.Verb != Delete:
		return fmt.Errorf("step has the verb %q: it must be create, update or delete", s.Verb)
	case subject == nil, s.Verb == Update && s.Live == nil, s.Verb == Create && s.Live != nil:
		return fmt.Errorf("step to %s an object lacks the object, or has one too many", s.Verb)
	case subject.GetNamespace() != namespace:
		return fmt.Errorf("step to %s %s: it is in namespace %q, and the target is %q",
			s.Verb, objectOf(subject), subject.GetNamespace(), namespace)
	case s.Removal != nil && s.After == nil:
		return fmt.Errorf("step to %s %s removes fields, and does not say what becomes of it", s.Verb, objectOf(subject))
	}
	return nil
}
