// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strings"
)

// runtimeMetadata lists the metadata that the API server maintains. Owner references are among them: they name their
// owner by uid, so they cannot be applied without it and are dangling with it.
var runtimeMetadata = [...]string{
	"creationTimestamp",
	"deletionGracePeriodSeconds",
	"deletionTimestamp",
	"generation",
	"managedFields",
	"ownerReferences",
	"resourceVersion",
	"selfLink",
	"uid",
}

// withoutRuntime returns the object without runtime fields. The result shares values with the object and is read-only.
// The function is idempotent.
func withoutRuntime(object map[string]any) map[string]any {
	owned := ownershipOf(object)
	result := maps.Clone(object)
	if !statusIsContent(object) {
		delete(result, "status")
	}
	metadata := open(result, "metadata")
	for _, field := range runtimeMetadata {
		delete(metadata, field)
	}
	keepItems(metadata, "finalizers", isOwnFinalizer)
	dropKeys(metadata, "labels", isRuntimeLabel)
	annotations := mapAt(metadata, "annotations")
	dropKeys(metadata, "annotations", func(key string) bool {
		return isRuntimeAnnotation(key) && !isScalingSpec(object, key) && !isCopyOptOut(key, annotations[key])
	})
	dropAllocated(result, metadata, owned)
	for _, field := range [...]string{"annotations", "finalizers", "labels"} {
		dropIfEmpty(metadata, field)
	}
	return result
}

// statusIsContent reports whether the status is the object's content: the object has no other field, and no manager
// wrote the status through the status subresource. A type with a status subresource takes no status from a manifest.
func statusIsContent(object map[string]any) bool {
	for field := range object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			return false
		}
	}
	entries, _ := mapAt(object, "metadata")["managedFields"].([]any)
	return !slices.ContainsFunc(entries, func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return textAt(fields, "subresource") == "status"
	})
}

// isOwnFinalizer reports whether a finalizer belongs to users or their controllers. The cluster adds finalizers without
// a domain and those under Kubernetes' domains where they are needed. In a manifest they would return after the cluster
// has removed them, and block a deletion for good.
func isOwnFinalizer(finalizer any) bool {
	name, ok := finalizer.(string)
	if !ok {
		return true
	}
	domain, _, qualified := strings.Cut(name, "/")
	if !qualified && !strings.Contains(domain, ".") {
		return false
	}
	return !isUnder(domain, "kubernetes.io") && !isUnder(domain, "k8s.io")
}

func isUnder(domain, parent string) bool {
	rest, found := strings.CutSuffix(domain, parent)
	return found && (rest == "" || strings.HasSuffix(rest, "."))
}
