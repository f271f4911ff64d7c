// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// planned is what plans depend on: an object without its status and what controllers write with it, such as the annotation in
// which a Deployment has the number of its rollout.
func planned(object *unstructured.Unstructured) map[string]any {
	rest := object.DeepCopy()
	delete(rest.Object, "status")
	rest.SetResourceVersion("")
	var owners []metav1.ManagedFieldsEntry
	for _, entry := range rest.GetManagedFields() {
		if entry.Subresource == "status" {
			withoutAnnotations(rest, entry)
		} else {
			owners = append(owners, entry)
		}
	}
	rest.SetManagedFields(owners)
	return rest.Object
}

// withoutAnnotations takes out the annotations that an entry owns.
func withoutAnnotations(object *unstructured.Unstructured, entry metav1.ManagedFieldsEntry) {
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
		object.SetAnnotations(nil) // Otherwise they would be there, and empty.
	}
}
