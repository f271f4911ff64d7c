// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"cmp"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// MaxListed is the maximum number of changed objects, and of workload names, in a record. With names of the maximum length they take less
// than 1 MiB. etcd accepts 1.5 MiB.
const MaxListed = 1000

// SetChanges sets the changed objects of a record, sorted, each object once with its last change. A record that is not about dependencies
// also has the number of all changed workloads, and the names of up to MaxListed of them.
func SetChanges(record *v1alpha1.SyncStatus, changes []v1alpha1.ResourceSummary) {
	distinct := lastOfEach(changes)
	status := &record.Status
	status.ResourceSummaries = slices.Clip(distinct[:min(len(distinct), MaxListed)])
	status.WorkloadCount, status.WorkloadNames = 0, nil
	if record.Spec.Type == v1alpha1.SyncTypeDependency {
		return
	}
	var names []string
	for _, change := range distinct {
		if _, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(change.Type)]; ok {
			status.WorkloadCount++
			names = append(names, change.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	status.WorkloadNames = slices.Clip(names[:min(len(names), MaxListed)])
}

// lastOfEach returns the last change of each object, in the order of type, namespace and name.
func lastOfEach(changes []v1alpha1.ResourceSummary) []v1alpha1.ResourceSummary {
	newestFirst := slices.Clone(changes)
	slices.Reverse(newestFirst)
	slices.SortStableFunc(newestFirst, compareObjects)
	return slices.CompactFunc(newestFirst, func(a, b v1alpha1.ResourceSummary) bool { return compareObjects(a, b) == 0 })
}

func compareObjects(a, b v1alpha1.ResourceSummary) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
