// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verb is the operation on an object.
type Verb string

// The operations.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Step is the operation on one object. It is not modified.
type Step struct {
	Verb Verb
	// Live is the object that the step was planned with, nil to create one. If the object has changed since, the step is
	// not executed.
	Live *unstructured.Unstructured
	// Removal is a JSON patch that is sent before Apply, or nil. It may test the resourceVersion of Live.
	Removal []byte
	// Apply is applied with force. It is nil to delete.
	Apply *unstructured.Unstructured
	// After is the predicted object. With a Removal, the dry run uses it, because an apply on top of a dry-run patch is not
	// possible.
	After *unstructured.Unstructured
}

// String describes the step without any content of the object.
func (s Step) String() string {
	if subject := s.subject(); subject != nil {
		return string(s.Verb) + " " + objectOf(subject).String()
	}
	return string(s.Verb)
}

// GoString equals String, so that no format verb prints content.
func (s Step) GoString() string { return s.String() }

// Object identifies an object of a cluster.
type Object struct {
	schema.GroupKind
	Namespace, Name string
}

// String returns the kind and the name.
func (o Object) String() string { return o.Kind + " " + o.Name }

func (o Object) isSecret() bool { return o.Group == "" && o.Kind == "Secret" }

func objectOf(u *unstructured.Unstructured) Object {
	return Object{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

// subject returns the object that is applied or deleted.
func (s Step) subject() *unstructured.Unstructured {
	if s.Verb == Delete {
		return s.Live
	}
	return s.Apply
}

// check validates a step.
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
