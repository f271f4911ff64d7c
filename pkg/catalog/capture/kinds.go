// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/source"
)

// resources are where the API server has workloads.
func resources() map[v1alpha1.WorkloadKind]schema.GroupResource {
	return map[v1alpha1.WorkloadKind]schema.GroupResource{
		v1alpha1.WorkloadDeployment:  {Group: "apps", Resource: "deployments"},
		v1alpha1.WorkloadStatefulSet: {Group: "apps", Resource: "statefulsets"},
		v1alpha1.WorkloadDaemonSet:   {Group: "apps", Resource: "daemonsets"},
		v1alpha1.WorkloadReplicaSet:  {Group: "apps", Resource: "replicasets"},
		v1alpha1.WorkloadJob:         {Group: "batch", Resource: "jobs"},
		v1alpha1.WorkloadCronJob:     {Group: "batch", Resource: "cronjobs"},
	}
}

// Types returns the type of each kind of workloads, in the version that the cluster prefers, and why a kind has none. When
// discovery is uncertain about a kind, nothing may be concluded from its absence.
func Types(
	snapshot *source.Snapshot,
) (types map[v1alpha1.WorkloadKind]schema.GroupVersionResource, missing map[v1alpha1.WorkloadKind]source.Unmatched) {
	types = map[v1alpha1.WorkloadKind]schema.GroupVersionResource{}
	missing = map[v1alpha1.WorkloadKind]source.Unmatched{}
	for kind, resource := range resources() {
		found, unmatched := snapshot.Resolve(source.Selection{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Scope: source.NamespacedScope,
		}, source.Policy{})
		if len(unmatched) > 0 {
			missing[kind] = unmatched[0]
			continue
		}
		types[kind] = found[0].Resource
	}
	return types, missing
}

// ReferenceTo returns what a catalog calls a workload, and false for an object that is none.
func ReferenceTo(object *unstructured.Unstructured) (v1alpha1.WorkloadReference, bool) {
	kind := object.GroupVersionKind().GroupKind()
	resource, ok := resources()[v1alpha1.WorkloadKind(kind.Kind)]
	if !ok || resource.Group != kind.Group {
		return v1alpha1.WorkloadReference{}, false
	}
	return v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadKind(kind.Kind), Name: object.GetName()}, true
}
