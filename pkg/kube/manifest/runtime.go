// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strings"
)

// runtimeMetadata lists the metadata that the API server keeps for itself. Owner references are among them: they name
// their owner by uid, so without it they cannot be applied and with it they are dead.
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

// withoutRuntime returns the object without what is runtime. The result shares what is kept with the object and is for
// reading only. Applied to its own result it changes nothing.
func withoutRuntime(object map[string]any) map[string]any {
	asked := askedFields(object)
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
		return isRuntimeAnnotation(key) && !isScalingSpec(object, key) && !isDirection(key, annotations[key])
	})
	dropAllocated(result, metadata, asked)
	for _, field := range [...]string{"annotations", "finalizers", "labels"} {
		dropIfEmpty(metadata, field)
	}
	return result
}

// statusIsContent says whether the status is all that the object has to say: it has no other field, and nobody wrote it
// through the status subresource. A type whose status is served as a subresource takes no status from a manifest.
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

// isOwnFinalizer says whether a finalizer belongs to users or their controllers. Those without a domain and those under
// the domains of Kubernetes are added by the cluster where they are due; carried along by a manifest they would come
// back after the cluster has taken them off, and hold up a deletion for good.
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
