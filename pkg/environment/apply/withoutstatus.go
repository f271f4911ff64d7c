// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// withoutStatus returns the part of an object that plans depend on: all but its status and the fields that controllers
// write with it, such as the revision annotation of a Deployment.
func withoutStatus(object *unstructured.Unstructured) map[string]any {
	rest := object.DeepCopy()
	delete(rest.Object, "status")
	rest.SetResourceVersion("")
	var owners []metav1.ManagedFieldsEntry
	for _, entry := range rest.GetManagedFields() {
		if entry.Subresource == "status" {
			removeAnnotations(rest, entry)
		} else {
			owners = append(owners, entry)
		}
	}
	rest.SetManagedFields(owners)
	return rest.Object
}

// removeAnnotations removes the annotations that an entry owns.
func removeAnnotations(object *unstructured.Unstructured, entry metav1.ManagedFieldsEntry) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil || fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return
	}
	annotations := []string{"metadata", "annotations"}
	within := fields.WithPrefix(fieldpath.MakePathOrDie(annotations[0])[0]).WithPrefix(fieldpath.MakePathOrDie(annotations[1])[0])
	for path := range within.All() {
		if name := path[0].FieldName; name != nil {
			unstructured.RemoveNestedField(object.Object, slices.Concat(annotations, []string{*name})...)
		}
	}
	if len(object.GetAnnotations()) == 0 {
		object.SetAnnotations(nil) // An empty map would be a difference.
	}
}
