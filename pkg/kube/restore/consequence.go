// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import "k8s.io/apimachinery/pkg/runtime/schema"

var namespace = schema.GroupKind{Kind: "Namespace"}

// Consequence says what is deleted with an object of a kind, beside the objects that it manages. It is empty if that is nothing.
func Consequence(kind schema.GroupKind) string {
	switch kind {
	case namespace:
		return "everything in the namespace is deleted with it, also what is not mirrored"
	case customResourceDefinition:
		return "all objects of the type are deleted with it, in all namespaces"
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return "its data is deleted with it, unless its volume has the reclaim policy Retain"
	}
	return ""
}

// ContainsOthers reports whether other objects are deleted with an object of a kind that a creation does not bring back.
func ContainsOthers(kind schema.GroupKind) bool {
	return kind == namespace || kind == customResourceDefinition
}
