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

// FromCRD returns the item of a CustomResourceDefinition and whether the definition is established. Before that its kind is not served, and
// its names can still be refused. The item has no labels and annotations.
func FromCRD(definition *unstructured.Unstructured) (Item, bool) {
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	created := definition.GetCreationTimestamp().Time
	return Item{
		Key:       Key{Kind: CustomResourceDefinition, ObjectKind: kind, Name: definition.GetName()},
		CreatedAt: created.UTC(),
		UpdatedAt: updatedAt(definition, created).UTC(),
		UID:       definition.GetUID(),
		Spec:      hashSpec(definition),
	}, established(definition)
}

// hashSpec returns a hash of the spec without the conversion: the CA bundles of webhooks change there, and the served API does not depend
// on it.
func hashSpec(definition *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec")
	if fields, ok := spec.(map[string]any); ok {
		fields = maps.Clone(fields)
		delete(fields, "conversion")
		spec = fields
	}
	// Maps are printed in key order.
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", spec))
	return hex.EncodeToString(sum[:16])
}

// established reports whether the condition Established is true.
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
