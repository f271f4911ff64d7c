// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// Key identifies an object within a namespace.
type Key struct {
	schema.GroupKind
	Name string
}

// KeyOf returns the key of an object.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{object.GroupVersionKind().GroupKind(), object.GetName()}
}

// String returns the kind and the name.
func (k Key) String() string { return k.Kind + " " + k.Name }

func byKey(objects []*unstructured.Unstructured) map[Key]*unstructured.Unstructured {
	found := make(map[Key]*unstructured.Unstructured, len(objects))
	for _, object := range objects {
		found[KeyOf(object)] = object
	}
	return found
}

// KeyOfIncluded returns the key of an entry of spec.include.
func KeyOfIncluded(o v1alpha1.IncludedObject) Key {
	// Validated entries always parse.
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	return Key{schema.GroupKind{Group: gv.Group, Kind: o.Kind}, o.Name}
}

// keyOf returns the key of the target of a reference.
func keyOf(target references.Target) Key {
	return Key{schema.GroupKind{Kind: string(target.Type)}, target.Name}
}

// recordKey returns the key of the dependency that a record describes.
func recordKey(record *v1alpha1.EnvironmentDependencyRecord) Key {
	return keyOf(references.Target{Type: references.Type(record.Type), Name: record.Source.Name})
}

// isWorkload reports whether the object has a kind that catalogs offer.
func (k Key) isWorkload() bool {
	resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(k.Kind)]
	return ok && resource.Group == k.Group
}

// workload returns the catalog's reference to the object.
func (k Key) workload() v1alpha1.WorkloadReference {
	return v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadKind(k.Kind), Name: k.Name}
}

// isDependency reports whether the index has records for this kind.
func (k Key) isDependency() bool {
	return k.Group == "" && v1alpha1.DependencyType(k.Kind).Valid()
}
