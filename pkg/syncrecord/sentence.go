// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncrecord

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Sentence says on one line how things are with a record. Everybody who shows a record shows this.
func Sentence(record *v1alpha1.SyncStatus) string {
	sentence := stateSentence(record)
	if record.Status.Preview {
		return "Preview: " + sentence
	}
	return sentence
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
		return count(int(n), "workload") + " changed"
	}
	numbers := map[string]int{}
	for _, summary := range record.Status.ResourceSummaries {
		numbers[summary.Type]++
	}
	if len(numbers) == 0 {
		return "Changed"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, count(numbers[kind], kind))
	}
	sentence := strings.Join(parts, ", ") + " changed"
	if len(record.Status.ResourceSummaries) >= MaxListed {
		return "At least " + sentence
	}
	return sentence
}

// count is a number of things, as in 2 ConfigMaps or 1 Ingress.
func count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// withError adds what went wrong, on the same line.
func withError(state string, problem *v1alpha1.SyncError) string {
	if problem == nil {
		return state
	}
	return state + ": " + strings.Join(strings.Fields(problem.Message), " ")
}
