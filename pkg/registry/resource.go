// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry says how each kind is served: its names, verbs, validation, columns and rules of change.
//
// A kind is one declaration, listed in kinds.go. The strategies, the REST endpoints and the tables are written once and read
// the declaration, so that a new kind adds data and no behaviour.
package registry

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"
)

// category is the word that selects all of our kinds, as in kubectl get slipstream.
const category = "slipstream"

// object is a pointer to the internal type of a kind.
type object interface {
	runtime.Object
	metav1.Object
}

// kind declares one kind; O is a pointer to its internal type, S its spec and T its status.
type kind[O object, S, T any] struct {
	plural, singular string
	shortNames       []string
	namespaced       bool

	newObject func() O
	newList   func() runtime.Object
	// spec and status point into an object. A kind without a spec is a record: the server writes it in process with
	// Records, and the API offers no way to create or change it.
	spec   func(O) *S
	status func(O) *T

	// validate judges a new object, validateUpdate one that replaces old, and validateStatusUpdate one whose status does;
	// a record has no use for the last.
	validate             func(O) field.ErrorList
	validateUpdate       func(updated, old O) field.ErrorList
	validateStatusUpdate func(updated, old O) field.ErrorList
	// validateStatusRequest, if there is one, judges besides what a controller writes at the endpoint of the status: what
	// the strategies and the requests of users record there, a controller may take out and not add.
	validateStatusRequest func(updated, old O) field.ErrorList
	// edits, if there are any, keep who has changed the spec in the status.
	edits *edits[O]
	// derive, if there is one, sets the fields of the status that follow from the rest of the object, whoever writes it.
	derive func(O)
	// selectable are the fields, besides the name and the namespace, that field selectors may use. v1alpha1 has to convert
	// their labels.
	selectable map[string]func(O) string

	// columns follow NAME in the tables that kubectl get prints.
	columns []column[O]
}

// resource is a kind without its types, as the strategies and endpoints see it.
type resource struct {
	plural, singular string
	shortNames       []string
	namespaced       bool
	record           bool

	newObject      func() runtime.Object
	newList        func() runtime.Object
	validate       func(obj runtime.Object) field.ErrorList
	validateUpdate func(obj, old runtime.Object) field.ErrorList

	// The rest is about kinds that users write; none of it is set for a record.
	validateStatusUpdate func(obj, old runtime.Object) field.ErrorList
	// validateStatusRequest admits everything, where the kind does not say otherwise.
	validateStatusRequest func(obj, old runtime.Object) field.ErrorList
	// clearStatus, keepStatus and keepSpec undo what a request may not set.
	clearStatus func(obj runtime.Object)
	keepStatus  func(obj, old runtime.Object)
	keepSpec    func(obj, old runtime.Object)
	specChanged func(obj, old runtime.Object) bool
	// admitEdit says why no change of the spec can be noted in the status of obj, and noteEdit notes one, which has made obj
	// of old. A kind that keeps no edits admits all of them and notes none.
	admitEdit func(obj runtime.Object, actor string) error
	noteEdit  func(obj, old runtime.Object, e edit)
	// derive does nothing where the kind does not say otherwise.
	derive func(obj runtime.Object)
	// attributes are what selectors look at; nil: the labels, name and namespace.
	attributes storage.AttrFunc

	columns []column[runtime.Object]
}

// erase forgets the types. The API machinery hands every function the type that newObject makes.
func (k kind[O, S, T]) erase() resource {
	r := resource{
		plural: k.plural, singular: k.singular, shortNames: k.shortNames, namespaced: k.namespaced,
		record:    k.spec == nil,
		newObject: func() runtime.Object { return k.newObject() },
		newList:   k.newList,
		validate:  func(obj runtime.Object) field.ErrorList { return k.validate(obj.(O)) },
		validateUpdate: func(obj, old runtime.Object) field.ErrorList {
			return k.validateUpdate(obj.(O), old.(O))
		},
		columns: eraseColumns(k.columns),
	}
	if r.record {
		return r
	}
	r.validateStatusUpdate = func(obj, old runtime.Object) field.ErrorList {
		return k.validateStatusUpdate(obj.(O), old.(O))
	}
	r.validateStatusRequest = func(obj, old runtime.Object) field.ErrorList {
		if k.validateStatusRequest == nil {
			return nil
		}
		return k.validateStatusRequest(obj.(O), old.(O))
	}
	r.admitEdit = func(obj runtime.Object, actor string) error {
		if k.edits == nil {
			return nil
		}
		return k.edits.admit(obj.(O), actor)
	}
	r.noteEdit = func(obj, old runtime.Object, e edit) {
		if k.edits != nil {
			before, _ := old.(O)
			k.edits.note(obj.(O), before, e)
		}
	}
	r.derive = func(obj runtime.Object) {
		if k.derive != nil {
			k.derive(obj.(O))
		}
	}
	if len(k.selectable) > 0 {
		r.attributes = func(obj runtime.Object) (labels.Set, fields.Set, error) { return k.attributesOf(obj.(O)) }
	}
	r.clearStatus = func(obj runtime.Object) { *k.status(obj.(O)) = *new(T) }
	r.keepStatus = func(obj, old runtime.Object) { *k.status(obj.(O)) = *k.status(old.(O)) }
	r.keepSpec = func(obj, old runtime.Object) { *k.spec(obj.(O)) = *k.spec(old.(O)) }
	r.specChanged = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(k.spec(obj.(O)), k.spec(old.(O)))
	}
	return r
}

// attributesOf are what selectors look at.
func (k kind[O, S, T]) attributesOf(obj O) (labels.Set, fields.Set, error) {
	attributes := storage.DefaultNamespaceScopedAttr
	if !k.namespaced {
		attributes = storage.DefaultClusterScopedAttr
	}
	ofLabels, ofFields, err := attributes(obj)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range k.selectable {
		ofFields[name] = value(obj)
	}
	return ofLabels, ofFields, nil
}
