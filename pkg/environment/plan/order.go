// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ranks orders the written kinds: dependencies come before the objects that need them.
var ranks = map[schema.GroupKind]int{
	{Kind: "ServiceAccount"}: 1,
	{Kind: "ConfigMap"}:      2,
	{Kind: "Secret"}:         3,
	{Kind: "Service"}:        4,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:     5,
	{Group: "apps", Kind: "DaemonSet"}:                      6,
	{Group: "apps", Kind: "Deployment"}:                     6,
	{Group: "apps", Kind: "ReplicaSet"}:                     6,
	{Group: "apps", Kind: "StatefulSet"}:                    6,
	{Group: "batch", Kind: "CronJob"}:                       6,
	{Group: "batch", Kind: "Job"}:                           6,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: 7,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          8,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           9,
	referenceGrants: 10,
	gateways:        11,
	grpcRoutes:      12,
	httpRoutes:      12,
}

// Kinds returns the kinds that an environment writes, in the order of writing.
func Kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(ranks), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a.Kind, b.Kind))
	})
}

// isWritten reports whether environments write objects of a kind.
func isWritten(kind schema.GroupKind) bool {
	_, known := ranks[kind]
	return known || IsOnlyIncluded(kind)
}

// rank returns the position of a kind in the order of writing. Custom resources come before the workloads that read them.
func rank(kind schema.GroupKind) int {
	if IsOnlyIncluded(kind) {
		return ranks[services]
	}
	return ranks[kind]
}

// compareSteps orders steps by execution: deletions are last, in reverse order.
func compareSteps(a, b Step) int {
	if a.Verb == Delete && b.Verb == Delete {
		a, b = b, a
	}
	return cmp.Or(
		cmp.Compare(deletesLast(a), deletesLast(b)), cmp.Compare(rank(a.GroupKind), rank(b.GroupKind)),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func deletesLast(s Step) int {
	if s.Verb == Delete {
		return 1
	}
	return 0
}
