// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Summary returns the state of a record on one line. It is the same in all user interfaces.
func Summary(record *v1alpha1.SyncStatus) string {
	if record.Status.Preview {
		return "Preview: " + stateSummary(record)
	}
	return stateSummary(record)
}

func stateSummary(record *v1alpha1.SyncStatus) string {
	status := &record.Status
	switch status.State {
	case v1alpha1.SyncStateAutoApplied:
		return changeSummary(record)
	case v1alpha1.SyncStateApplied:
		return changeSummary(record) + " by " + status.Actor
	case v1alpha1.SyncStatePending:
		if record.Spec.Type == v1alpha1.SyncTypeDependency {
			return changeSummary(record)
		}
		return "Waiting"
	case v1alpha1.SyncStateInProgress:
		if p := status.Progress; p != nil {
			return fmt.Sprintf("Syncing: %d of %d", p.Done, p.Total)
		}
		return "Syncing"
	case v1alpha1.SyncStateCompleted:
		return "Synced"
	case v1alpha1.SyncStateConflicted:
		return withError("Conflict", status.Error)
	case v1alpha1.SyncStateFailed:
		return withError("Failed", status.Error)
	case v1alpha1.SyncStateRetrying:
		return withError(fmt.Sprintf("Attempt %d", status.Attempts), status.Error)
	case v1alpha1.SyncStateManualIntervention:
		return withError("Needs a decision", status.Error)
	case v1alpha1.SyncStateDismissed:
		return "Dismissed by " + status.ResolvedBy
	default:
		return string(status.State)
	}
}

// changeSummary returns the number of changed workloads, or of changed objects by type if there are no workloads.
func changeSummary(record *v1alpha1.SyncStatus) string {
	if n := record.Status.WorkloadCount; n > 0 {
		return syncstatussummary.Count(int(n), "workload") + " changed"
	}
	numbers := map[string]int{}
	for _, summary := range record.Status.ResourceSummaries {
		numbers[summary.Type]++
	}
	if len(numbers) == 0 {
		return "Changed"
	}
	changed := syncstatussummary.Counts(numbers) + " changed"
	if len(record.Status.ResourceSummaries) >= MaxListed {
		return "At least " + changed
	}
	return changed
}

// withError adds the message of an error, on the same line.
func withError(state string, problem *v1alpha1.SyncError) string {
	if problem == nil {
		return state
	}
	return syncstatussummary.With(state, problem.Message)
}
