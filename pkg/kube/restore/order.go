// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ordered are the kinds that are written in a certain order: what others need comes first. Kinds that are not listed come after
// them, except for those in last.
var ordered = []schema.GroupKind{
	namespace,
	customResourceDefinition,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Kind: "ResourceQuota"},
	{Kind: "LimitRange"},
	{Kind: "ServiceAccount"},
	{Kind: "Secret"},
	{Kind: "ConfigMap"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Kind: "PersistentVolume"},
	{Kind: "PersistentVolumeClaim"},
	{Kind: "Service"},
	{Kind: "Pod"},
	{Kind: "ReplicationController"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "Job"},
	{Group: "batch", Kind: "CronJob"},
}

// last are kinds that the API server asks when other objects are written, or forwards requests to.
var last = []schema.GroupKind{
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
}

var customResourceDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func rank(kind schema.GroupKind) int {
	if i := slices.Index(ordered, kind); i >= 0 {
		return i
	}
	return len(ordered) + 1 + slices.Index(last, kind)
}

// compareSteps orders steps as they are executed. Deletions are last, in reverse order.
func compareSteps(a, b *Step) int {
	if deletes := cmp.Compare(deletion(a), deletion(b)); deletes != 0 {
		return deletes
	}
	if a.Verb == Delete {
		a, b = b, a
	}
	return cmp.Or(
		cmp.Compare(rank(a.Kind.GroupKind()), rank(b.Kind.GroupKind())), cmp.Compare(a.Kind.Group, b.Kind.Group),
		cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func deletion(s *Step) int {
	if s.Verb == Delete {
		return 1
	}
	return 0
}
