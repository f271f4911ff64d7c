// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Workloads are those that the plan changes, or would if somebody had decided about their conflicts, by kind and name.
func (p *Plan) Workloads() []v1alpha1.WorkloadChange {
	var changed []v1alpha1.WorkloadChange
	for _, s := range p.Steps {
		if change := s.ChangeType(); change != "" && s.isWorkload() {
			changed = append(changed, v1alpha1.WorkloadChange{Kind: v1alpha1.WorkloadKind(s.Kind), Name: s.Name, ChangeType: change})
		}
	}
	for _, c := range p.Conflicts {
		changed = append(changed, v1alpha1.WorkloadChange{Kind: c.Kind, Name: c.Name, ChangeType: v1alpha1.ChangeChanged})
	}
	slices.SortFunc(changed, func(a, b v1alpha1.WorkloadChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return changed
}

// Dependencies are the numbers of ConfigMaps, Secrets, Services and ServiceAccounts that an action changes, by type.
func (p *Plan) Dependencies(action v1alpha1.SyncAction) []v1alpha1.DependencyCount {
	counts := map[v1alpha1.DependencyType]int32{}
	for _, s := range p.Steps {
		if s.ChangeType() != "" && s.isDependency() && s.Action == action {
			counts[v1alpha1.DependencyType(s.Kind)]++
		}
	}
	var list []v1alpha1.DependencyCount
	for of, count := range counts {
		list = append(list, v1alpha1.DependencyCount{Type: v1alpha1.CountedType(of), Count: count})
	}
	slices.SortFunc(list, func(a, b v1alpha1.DependencyCount) int { return cmp.Compare(a.Type, b.Type) })
	return list
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
