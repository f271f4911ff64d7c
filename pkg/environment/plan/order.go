// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that are written, by when: what others need comes before them.
var ranks = map[schema.GroupKind]int{
	{Kind: "ServiceAccount"}:                                1,
	{Kind: "ConfigMap"}:                                     2,
	{Kind: "Secret"}:                                        3,
	{Kind: "Service"}:                                       4,
	{Group: "apps", Kind: "DaemonSet"}:                      5,
	{Group: "apps", Kind: "Deployment"}:                     5,
	{Group: "apps", Kind: "ReplicaSet"}:                     5,
	{Group: "apps", Kind: "StatefulSet"}:                    5,
	{Group: "batch", Kind: "CronJob"}:                       5,
	{Group: "batch", Kind: "Job"}:                           5,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: 6,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          7,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           8,
}

// Kinds are those of which an environment writes objects, in the order in which it does.
func Kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(ranks), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a.Kind, b.Kind))
	})
}

// inOrder compares steps by when they are done: deletions come last, and in the reverse order.
func inOrder(a, b Step) int {
	if a.Verb == Delete && b.Verb == Delete {
		a, b = b, a
	}
	return cmp.Or(
		cmp.Compare(last(a), last(b)), cmp.Compare(ranks[a.GroupKind], ranks[b.GroupKind]),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func last(s Step) int {
	if s.Verb == Delete {
		return 1
	}
	return 0
}
