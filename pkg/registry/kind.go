// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry serves the kinds of the API: their names, verbs, validation, columns and strategies.
//
// A kind is one declaration, listed in kinds.go. Strategies, REST endpoints and tables are generic and read the
// declaration, so that a new kind adds data and no code.
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

// category selects all kinds of the API, as in kubectl get slipstream.
const category = "slipstream"

// object is a pointer to the internal type of a kind.
type object interface {
	runtime.Object
	metav1.Object
}

// kind declares a kind. O is a pointer to its internal type, S its spec and T its status.
type kind[O object, S, T any] struct {
	plural, singular string
	shortNames       []string
	namespaced       bool

	newObject func() O
	newList   func() runtime.Object
	// spec and status return pointers into an object. A kind without a spec is a record: the server writes it with
	// Records, and the API offers no way to create or change it.
	spec   func(O) *S
	status func(O) *T

	// validate validates a new object, validateUpdate an update, and validateStatusUpdate a status update. A record
	// does not use the last.
	validate             func(O) field.ErrorList
	validateUpdate       func(updated, old O) field.ErrorList
	validateStatusUpdate func(updated, old O) field.ErrorList
	// validateStatusRequest also validates updates by controllers at the status endpoint, if it is set: they are
	// allowed to remove what the strategies and the requests of users record there, but not to add to it.
	validateStatusRequest func(updated, old O) field.ErrorList
	// edits, if set, record in the status who changed the spec.
	edits *edits[O]
	// derive, if set, computes the derived fields of the status at every write.
	derive func(O)
	// selectable are the fields that field selectors support besides the name and the namespace. v1alpha1 has to
	// convert their labels.
	selectable map[string]func(O) string

	// columns follow the column NAME in tables, or precede it with nameLast.
	columns  []column[O]
	nameLast bool
}

// resource is a kind with erased types, for the strategies and endpoints.
type resource struct {
	plural, singular string
	shortNames       []string
	namespaced       bool
	record           bool

	newObject      func() runtime.Object
	newList        func() runtime.Object
	validate       func(obj runtime.Object) field.ErrorList
	validateUpdate func(obj, old runtime.Object) field.ErrorList

	// The remaining functions are for kinds that users write, and are nil for a record.
	validateStatusUpdate func(obj, old runtime.Object) field.ErrorList
	// validateStatusRequest accepts everything unless the kind defines it.
	validateStatusRequest func(obj, old runtime.Object) field.ErrorList
	// clearStatus, keepStatus and keepSpec revert what a request is not allowed to set.
	clearStatus func(obj runtime.Object)
	keepStatus  func(obj, old runtime.Object)
	keepSpec    func(obj, old runtime.Object)
	specChanged func(obj, old runtime.Object) bool
	// admitEdit returns an error if a change of the spec cannot be recorded in the status of obj. recordEdit records a
	// change of old to obj. They do nothing for a kind without edits.
	admitEdit  func(obj runtime.Object, actor string) error
	recordEdit func(obj, old runtime.Object, e edit)
	// derive does nothing unless the kind defines it.
	derive func(obj runtime.Object)
	// attributes are the attributes for selectors; nil means the labels, name and namespace.
	attributes storage.AttrFunc

	columns  []column[runtime.Object]
	nameLast bool
}

// erase erases the types. The API machinery passes every function the type that newObject returns.
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
		columns: eraseColumns(k.columns), nameLast: k.nameLast,
	}
	if len(k.selectable) > 0 {
		r.attributes = func(obj runtime.Object) (labels.Set, fields.Set, error) { return k.attributesOf(obj.(O)) }
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
	r.recordEdit = func(obj, old runtime.Object, e edit) {
		if k.edits != nil {
			before, _ := old.(O)
			k.edits.record(obj.(O), before, e)
		}
	}
	r.derive = func(obj runtime.Object) {
		if k.derive != nil {
			k.derive(obj.(O))
		}
	}
	r.clearStatus = func(obj runtime.Object) { *k.status(obj.(O)) = *new(T) }
	r.keepStatus = func(obj, old runtime.Object) { *k.status(obj.(O)) = *k.status(old.(O)) }
	r.keepSpec = func(obj, old runtime.Object) { *k.spec(obj.(O)) = *k.spec(old.(O)) }
	r.specChanged = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(k.spec(obj.(O)), k.spec(old.(O)))
	}
	return r
}

// attributesOf returns the attributes for selectors.
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
