// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Sentence says on one line how things are with a record. Everybody who shows a record shows this.
func Sentence(record *v1alpha1.SyncStatus) string {
	if record.Status.Preview {
		return "Preview: " + stateSentence(record)
	}
	return stateSentence(record)
}

func stateSentence(record *v1alpha1.SyncStatus) string {
	status := &record.Status
	switch status.State {
	case v1alpha1.SyncStateAutoApplied:
		return changes(record)
	case v1alpha1.SyncStateApplied:
		return changes(record) + " by " + status.Actor
	case v1alpha1.SyncStatePending:
		if record.Spec.Type == v1alpha1.SyncTypeDependency {
			return changes(record)
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
		return withError("Needs someone", status.Error)
	case v1alpha1.SyncStateDismissed:
		return "Dismissed by " + status.ResolvedBy
	default:
		return string(status.State)
	}
}

// changes says what changed: workloads, or else objects by their types.
func changes(record *v1alpha1.SyncStatus) string {
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

// withError adds what went wrong, on the same line.
func withError(state string, problem *v1alpha1.SyncError) string {
	if problem == nil {
		return state
	}
	return syncstatussummary.With(state, problem.Message)
}
