// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

// objectOf returns the identity of an event's object.
func objectOf(resource schema.GroupResource, object *unstructured.Unstructured) Object {
	return Object{GroupResource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// objectOfFact returns the identity of a fact's object; without a name it is a collection.
func objectOfFact(fact *Fact) Object {
	return Object{GroupResource: schema.GroupResource{Group: fact.Group, Resource: fact.Resource}, Namespace: fact.Namespace, Name: fact.Name}
}

// collection returns the identity of the collection that contains an object.
func (o Object) collection() Object {
	o.Name = ""
	return o
}
