// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

func TestSummary(t *testing.T) {
	changed := func(kinds ...string) []v1alpha1.ResourceSummary {
		var summaries []v1alpha1.ResourceSummary
		for _, kind := range kinds {
			summaries = append(summaries, v1alpha1.ResourceSummary{Type: kind})
		}
		return summaries
	}
	problem := &v1alpha1.SyncError{Reason: "SourceNotFound", Message: "the namespace\nproduction  does not exist"}
	tests := []struct {
		want   string
		of     v1alpha1.SyncType
		record v1alpha1.SyncRecord
	}{
		{"1 workload changed", catalog, v1alpha1.SyncRecord{State: autoApplied, WorkloadCount: 1}},
		{"3 workloads changed", catalog, v1alpha1.SyncRecord{State: autoApplied, WorkloadCount: 3}},
		{"Preview: 3 workloads changed", catalog, v1alpha1.SyncRecord{State: autoApplied, WorkloadCount: 3, Preview: true}},
		{"2 workloads changed by jane", catalog, v1alpha1.SyncRecord{State: applied, WorkloadCount: 2, Actor: "jane"}},
		{"Changed by jane", catalog, v1alpha1.SyncRecord{State: applied, Actor: "jane"}},
		{"Failed: the namespace production does not exist", catalog, v1alpha1.SyncRecord{State: failed, Error: problem}},
		{"Attempt 2: the namespace production does not exist", catalog, v1alpha1.SyncRecord{State: retrying, Attempts: 2, Error: problem}},
		{"Needs a decision: the namespace production does not exist", catalog, v1alpha1.SyncRecord{State: manualIntervention, Error: problem}},
		{"Dismissed by joe", catalog, v1alpha1.SyncRecord{State: dismissed, ResolvedBy: "joe"}},
		{"Waiting", environment, v1alpha1.SyncRecord{State: pending, WorkloadCount: 3}},
		{"Syncing", environment, v1alpha1.SyncRecord{State: inProgress}},
		{"Syncing: 3 of 10", environment, v1alpha1.SyncRecord{State: inProgress, Progress: &v1alpha1.Progress{Done: 3, Total: 10}}},
		{"Synced", environment, v1alpha1.SyncRecord{State: completed}},
		{"Preview: Synced", environment, v1alpha1.SyncRecord{State: completed, Preview: true}},
		{"Conflict: 2 fields", environment, v1alpha1.SyncRecord{State: conflicted, Error: &v1alpha1.SyncError{Message: "2 fields"}}},
		{"Conflict", environment, v1alpha1.SyncRecord{State: conflicted}},
		{"Superseded", environment, v1alpha1.SyncRecord{State: superseded}},
		{
			"2 ConfigMaps, 2 Ingresses, 2 NetworkPolicies, 1 Secret changed", dependency,
			v1alpha1.SyncRecord{State: pending, ResourceSummaries: changed(
				"NetworkPolicy", "Secret", "ConfigMap", "Ingress", "ConfigMap", "Ingress", "NetworkPolicy")},
		},
		{
			"At least 1000 ConfigMaps changed", dependency,
			v1alpha1.SyncRecord{State: pending, ResourceSummaries: changed(slices.Repeat([]string{"ConfigMap"}, syncstatus.MaxListed)...)},
		},
		{"Sleeping", dependency, v1alpha1.SyncRecord{State: "Sleeping"}},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			if got := syncstatus.Summary(&v1alpha1.SyncStatus{Spec: spec(test.of), Status: test.record}); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
