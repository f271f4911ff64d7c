// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupName is the API group of this server's own kinds.
const groupName = "configbutler.ai"

// preset returns the resource types that describe a desired state. A selection without resources selects them.
func preset() []schema.GroupResource {
	return slices.Concat(
		inGroup("apps", "deployments", "statefulsets", "daemonsets"),
		inGroup("", "services", "configmaps", "secrets", "serviceaccounts", "resourcequotas", "limitranges", "endpoints"),
		inGroup("discovery.k8s.io", "endpointslices"),
		inGroup("networking.k8s.io", "ingresses", "networkpolicies"),
		inGroup("gateway.networking.k8s.io", "gateways", "httproutes", "grpcroutes", "referencegrants"),
		inGroup("rbac.authorization.k8s.io", "roles", "rolebindings", "clusterroles", "clusterrolebindings"),
		inGroup("policy", "poddisruptionbudgets"),
		inGroup("apiextensions.k8s.io", "customresourcedefinitions"),
		inGroup("apiregistration.k8s.io", "apiservices"),
		inGroup("scheduling.k8s.io", "priorityclasses"),
		inGroup("storage.k8s.io", "storageclasses"),
	)
}

// defaultExclusions returns the resource types that `*` does not select: those that the cluster's own components write,
// many of them several times a minute, and the records of this server.
func defaultExclusions() []schema.GroupResource {
	return slices.Concat(
		inGroup("", "pods", "events"),
		inGroup("events.k8s.io", "events"),
		inGroup("coordination.k8s.io", "leases"),
		inGroup("apps", "controllerrevisions"),
		inGroup("flowcontrol.apiserver.k8s.io", "flowschemas", "prioritylevelconfigurations"),
		inGroup("batch", "jobs", "cronjobs"),
		inGroup(groupName, "gitdestinationstatuses", "catalogworkloads", "environmentdependencies", "syncstatuses", "changes"),
	)
}

// changedByCommits returns the types that cannot be mirrored, because each commit changes them: it is recorded in its
// GitDestinationStatus, and in Changes.
func changedByCommits() []schema.GroupResource {
	return inGroup(groupName, "gitdestinationstatuses", "changes")
}

// sameObjects maps types to the types of another group under which the API server serves the same objects.
func sameObjects() map[schema.GroupResource]schema.GroupResource {
	return map[schema.GroupResource]schema.GroupResource{
		{Group: "events.k8s.io", Resource: "events"}:       {Group: "", Resource: "events"},
		{Group: "extensions", Resource: "ingresses"}:       {Group: "networking.k8s.io", Resource: "ingresses"},
		{Group: "extensions", Resource: "networkpolicies"}: {Group: "networking.k8s.io", Resource: "networkpolicies"},
		{Group: "extensions", Resource: "deployments"}:     {Group: "apps", Resource: "deployments"},
		{Group: "extensions", Resource: "daemonsets"}:      {Group: "apps", Resource: "daemonsets"},
		{Group: "extensions", Resource: "replicasets"}:     {Group: "apps", Resource: "replicasets"},
	}
}

func inGroup(group string, resources ...string) []schema.GroupResource {
	types := make([]schema.GroupResource, 0, len(resources))
	for _, resource := range resources {
		types = append(types, schema.GroupResource{Group: group, Resource: resource})
	}
	return types
}
