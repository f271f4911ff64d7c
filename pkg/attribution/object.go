// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

// objectOf names the object of an event.
func objectOf(resource schema.GroupResource, object *unstructured.Unstructured) Object {
	return Object{GroupResource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// objectOfFact names the object that a fact is about; without a name it is a collection.
func objectOfFact(fact *Fact) Object {
	return Object{GroupResource: schema.GroupResource{Group: fact.Group, Resource: fact.Resource}, Namespace: fact.Namespace, Name: fact.Name}
}

// collection names the collection that an object is in.
func (o Object) collection() Object {
	o.Name = ""
	return o
}
