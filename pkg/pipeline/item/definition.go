// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FromCRD is what is told of a CustomResourceDefinition, and whether it is established: before that nothing can be made of what it
// defines, and it may still be refused for its names. Its labels and annotations are not told of.
func FromCRD(definition *unstructured.Unstructured) (Item, bool) {
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	created := definition.GetCreationTimestamp().Time
	return Item{
		Key:       Key{Kind: CustomResourceDefinition, ObjectKind: kind, Name: definition.GetName()},
		CreatedAt: created.UTC(),
		UpdatedAt: lastWritten(definition, created).UTC(),
		UID:       definition.GetUID(),
		Spec:      hashSpec(definition),
	}, established(definition)
}

// hashSpec leaves out how versions are converted: certificates of webhooks are renewed there, and none of it is what the definition
// offers.
func hashSpec(definition *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec")
	if fields, ok := spec.(map[string]any); ok {
		fields = maps.Clone(fields)
		delete(fields, "conversion")
		spec = fields
	}
	// Maps are printed in the order of their keys.
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", spec))
	return hex.EncodeToString(sum[:16])
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, entry := range list {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Established" {
			return condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
