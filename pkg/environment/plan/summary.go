// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Prompt is what changes come to, as a diff shows them: the workloads, by kind and name, and the numbers of other objects, by type: those
// that the action Cluster brings, and, while there are no workloads, those of the action Catalog. What is left alone although it should
// be another, or the source does not have it any more, counts as well.
func Prompt(changes []v1alpha1.ObjectChange) ([]v1alpha1.WorkloadChange, []v1alpha1.DependencyCount) {
	var workloads []v1alpha1.WorkloadChange
	for _, c := range changes {
		if isWorkload(c) {
			workloads = append(workloads, v1alpha1.WorkloadChange{Kind: v1alpha1.WorkloadKind(c.Kind), Name: c.Name, ChangeType: c.ChangeType})
		}
	}
	slices.SortFunc(workloads, func(a, b v1alpha1.WorkloadChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	counts := map[v1alpha1.CountedType]int32{}
	for _, c := range changes {
		of := typeOf(c)
		if of.Valid() && (c.Action == v1alpha1.SyncActionCluster || len(workloads) == 0) {
			counts[of]++
		}
	}
	var others []v1alpha1.DependencyCount
	for of, count := range counts {
		others = append(others, v1alpha1.DependencyCount{Type: of, Count: count})
	}
	slices.SortFunc(others, func(a, b v1alpha1.DependencyCount) int { return cmp.Compare(a.Type, b.Type) })
	return workloads, others
}

// typeOf is what a change counts as that is no workload.
func typeOf(c v1alpha1.ObjectChange) v1alpha1.CountedType {
	if group, _, ok := strings.Cut(c.APIVersion, "/"); ok && v1alpha1.IsCustomGroup(group) {
		return v1alpha1.CountedCustomResource
	}
	return v1alpha1.CountedType(c.Kind)
}

// isWorkload says whether a change is one of a workload.
func isWorkload(c v1alpha1.ObjectChange) bool {
	resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(c.Kind)]
	return ok && strings.HasPrefix(c.APIVersion, resource.Group+"/")
}

// Summaries are the objects that the plan changes, in the order in which it does.
func (p *Plan) Summaries() []v1alpha1.ResourceSummary {
	var list []v1alpha1.ResourceSummary
	for _, s := range p.Steps {
		if change := s.ChangeType(); change != "" {
			list = append(list, v1alpha1.ResourceSummary{Type: s.Kind, Namespace: s.Namespace, Name: s.Name, ChangeType: change})
		}
	}
	return list
}

// Unchanged is the number of objects that are what they should be.
func (p *Plan) Unchanged() int32 {
	var count int32
	for _, s := range p.Steps {
		if s.Unchanged {
			count++
		}
	}
	return count
}

// Failures are the objects because of which a sync does not end well although the rest is done.
func (p *Plan) Failures() []v1alpha1.ObjectFailure {
	return slices.Concat(p.Missing, p.NotOurs, p.Leaving)
}

// ChangeType is what a step makes of its object, empty if it leaves it alone.
func (s Step) ChangeType() v1alpha1.ChangeType {
	switch s.Verb {
	case Create:
		return v1alpha1.ChangeAdded
	case Update:
		return v1alpha1.ChangeChanged
	case Delete:
		return v1alpha1.ChangeRemoved
	}
	return ""
}
