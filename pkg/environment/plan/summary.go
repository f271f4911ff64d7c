// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Prompt summarizes changes: the workloads by kind and name, and the number of other objects by type. The other objects are
// those of the action Cluster, and those of the action Catalog if no workload changes. Objects that are left alone although
// they should change, and objects that the source no longer has, count as well.
func Prompt(changes []v1alpha1.ObjectChange) ([]v1alpha1.WorkloadChange, []v1alpha1.DependencyCount) {
	var workloads []v1alpha1.WorkloadChange
	for _, c := range changes {
		if isWorkloadChange(c) {
			workloads = append(workloads, v1alpha1.WorkloadChange{Kind: v1alpha1.WorkloadKind(c.Kind), Name: c.Name, ChangeType: c.ChangeType})
		}
	}
	slices.SortFunc(workloads, func(a, b v1alpha1.WorkloadChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	counts := map[v1alpha1.CountedType]int32{}
	for _, c := range changes {
		of := countedType(c)
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

// countedType returns the type under which a change of another object than a workload is counted.
func countedType(c v1alpha1.ObjectChange) v1alpha1.CountedType {
	if group, _, ok := strings.Cut(c.APIVersion, "/"); ok && v1alpha1.IsCustomGroup(group) {
		return v1alpha1.CountedCustomResource
	}
	return v1alpha1.CountedType(c.Kind)
}

// isWorkloadChange reports whether a change concerns a workload.
func isWorkloadChange(c v1alpha1.ObjectChange) bool {
	resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(c.Kind)]
	return ok && strings.HasPrefix(c.APIVersion, resource.Group+"/")
}

// Summaries lists the objects that the plan changes, in order of execution.
func (p *Plan) Summaries() []v1alpha1.ResourceSummary {
	var list []v1alpha1.ResourceSummary
	for _, s := range p.Steps {
		if change := s.ChangeType(); change != "" {
			list = append(list, v1alpha1.ResourceSummary{Type: s.Kind, Namespace: s.Namespace, Name: s.Name, ChangeType: change})
		}
	}
	return list
}

// Unchanged returns the number of objects that already match the desired state.
func (p *Plan) Unchanged() int32 {
	var count int32
	for _, s := range p.Steps {
		if s.Unchanged {
			count++
		}
	}
	return count
}

// Failures lists the objects that make a sync fail although the remaining steps are executed.
func (p *Plan) Failures() []v1alpha1.ObjectFailure {
	return slices.Concat(p.Missing, p.NotOurs, p.Terminating)
}

// ChangeType returns the type of change, empty if the step leaves the object alone.
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
