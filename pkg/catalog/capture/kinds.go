// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Types returns the type of each kind of workloads, in the preferred version of the cluster, and why a kind has none. If discovery is
// uncertain about a kind, the caller must not assume that it is not served.
func Types(
	snapshot *watch.Snapshot,
) (types map[v1alpha1.WorkloadKind]schema.GroupVersionResource, missing map[v1alpha1.WorkloadKind]watch.Unmatched) {
	types = map[v1alpha1.WorkloadKind]schema.GroupVersionResource{}
	missing = map[v1alpha1.WorkloadKind]watch.Unmatched{}
	for kind, resource := range v1alpha1.WorkloadResources() {
		found, unmatched := snapshot.Resolve(watch.Selection{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Scope: watch.NamespacedScope,
		}, watch.Policy{})
		if len(unmatched) > 0 {
			missing[kind] = unmatched[0]
			continue
		}
		types[kind] = found[0].Resource
	}
	return types, missing
}

// ReferenceTo returns the reference of a workload. It returns false for an object of another kind.
func ReferenceTo(object *unstructured.Unstructured) (v1alpha1.WorkloadReference, bool) {
	kind := object.GroupVersionKind().GroupKind()
	resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(kind.Kind)]
	if !ok || resource.Group != kind.Group {
		return v1alpha1.WorkloadReference{}, false
	}
	return v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadKind(kind.Kind), Name: object.GetName()}, true
}
