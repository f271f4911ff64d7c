// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

func summary(kind, name string, how v1alpha1.ChangeType) v1alpha1.ResourceSummary {
	return v1alpha1.ResourceSummary{Type: kind, Namespace: "production", Name: name, ChangeType: how}
}

func TestSetChanges(t *testing.T) {
	changes := []v1alpha1.ResourceSummary{
		summary("Deployment", "worker", v1alpha1.ChangeChanged),
		summary("Deployment", "api", v1alpha1.ChangeAdded),
		summary("CronJob", "api", v1alpha1.ChangeChanged),
		summary("Deployment", "worker", v1alpha1.ChangeRemoved),
	}
	want := []v1alpha1.ResourceSummary{
		summary("CronJob", "api", v1alpha1.ChangeChanged),
		summary("Deployment", "api", v1alpha1.ChangeAdded),
		summary("Deployment", "worker", v1alpha1.ChangeRemoved),
	}
	for of, wantStatus := range map[v1alpha1.SyncType]v1alpha1.SyncRecord{
		catalog: {
			State: autoApplied, AutoTriggered: true, WorkloadCount: 3, WorkloadNames: []string{"api", "worker"}, ResourceSummaries: want,
		},
		dependency: {State: autoApplied, AutoTriggered: true, ResourceSummaries: want},
	} {
		record := in(of, autoApplied, true)
		syncstatus.SetChanges(record, changes)
		if diff := cmp.Diff(wantStatus, record.Status); diff != "" {
			t.Errorf("%s: wrong record (-want +got):\n%s", of, diff)
		}
	}
	if changes[0].ChangeType != v1alpha1.ChangeChanged || changes[3].Name != "worker" {
		t.Errorf("SetChanges has modified its argument: %v", changes)
	}
}

// TestWorkloadsAreCounted has changes of workloads and of other objects.
func TestWorkloadsAreCounted(t *testing.T) {
	record := in(environment, inProgress, true)
	syncstatus.SetChanges(record, []v1alpha1.ResourceSummary{
		summary("Deployment", "web", v1alpha1.ChangeChanged), summary("ConfigMap", "settings", v1alpha1.ChangeAdded),
	})
	if s := record.Status; s.WorkloadCount != 1 || !slices.Equal(s.WorkloadNames, []string{"web"}) || len(s.ResourceSummaries) != 2 {
		t.Errorf("%d workloads, %v, of %v", s.WorkloadCount, s.WorkloadNames, s.ResourceSummaries)
	}
}

func TestSetChangesCountsAllWorkloads(t *testing.T) {
	var changes []v1alpha1.ResourceSummary
	for i := range syncstatus.MaxListed + 1 {
		changes = append(changes, summary("Deployment", fmt.Sprintf("w%04d", i), v1alpha1.ChangeChanged))
	}
	record := in(catalog, autoApplied, true)
	syncstatus.SetChanges(record, changes)
	status := record.Status
	if len(status.ResourceSummaries) != syncstatus.MaxListed || len(status.WorkloadNames) != syncstatus.MaxListed ||
		status.WorkloadCount != syncstatus.MaxListed+1 {
		t.Errorf("%d summaries, %d names, count %d", len(status.ResourceSummaries), len(status.WorkloadNames), status.WorkloadCount)
	}
}
