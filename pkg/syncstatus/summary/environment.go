// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Environment says how things are with an environment: what is being done, or else what keeps it from being done, or else
// what is offered, or else that nothing is.
func Environment(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case e.DeletionTimestamp != nil:
		return "Deleting"
	case status.ObservedGeneration == 0:
		return "Not looked at yet"
	case holds(status, v1alpha1.ConditionSyncing):
		return "Syncing"
	case e.Generation != status.ObservedGeneration:
		return takingOver(status.PendingEdits)
	}
	if sentence := trouble(status); sentence != "" {
		return sentence
	}
	return pinned(offer(e), e.Spec.PinnedRevision)
}

// takingOver says that a change of the spec has not been dealt with yet.
func takingOver(edits []v1alpha1.EnvironmentEdit) string {
	if len(edits) == 0 {
		return "Taking over a change of the spec"
	}
	return "Taking over a change by " + edits[len(edits)-1].Actor
}

// failed says that something has failed. A message that says so itself is not told so twice.
func failed(message string) string {
	if strings.HasPrefix(message, "Failed to ") {
		return Line(message)
	}
	return With("Failed", message)
}

// trouble says what keeps an environment from being up to date, the worst first. Empty when nothing does.
func trouble(status *v1alpha1.EnvironmentStatus) string {
	switch {
	case len(status.Conflicts) > 0:
		return "Conflict: " + Count(conflictingFields(status.Conflicts), "field")
	case holds(status, v1alpha1.ConditionStalled) && !hasFailed(status):
		return With("Stalled", messageOf(status, v1alpha1.ConditionStalled))
	case status.LastError != nil:
		return failed(status.LastError.Message)
	case holds(status, v1alpha1.ConditionHeld) && !isPin(status):
		return With("Held", messageOf(status, v1alpha1.ConditionHeld))
	case isWithheld(status):
		return Line(messageOf(status, v1alpha1.ConditionDependenciesUpToDate))
	}
	return ""
}

// isWithheld says whether some of what workloads refer to is not copied any more: the catalog's editor may not read it, or that is
// not known.
func isWithheld(status *v1alpha1.EnvironmentStatus) bool {
	found := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
	return found != nil && (found.Reason == v1alpha1.ReasonPermissionLost || found.Reason == v1alpha1.ReasonUnreachable)
}

// hasFailed says whether it is because of a sync that failed that an environment is stalled.
func hasFailed(status *v1alpha1.EnvironmentStatus) bool {
	stalled := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled)
	return status.LastError != nil && stalled.Reason == v1alpha1.ReasonSyncFailed
}

func conflictingFields(conflicts []v1alpha1.WorkloadConflict) int {
	fields := 0
	for _, conflict := range conflicts {
		fields += len(conflict.Fields)
	}
	return fields
}

// offer says what has changed in the source and can be taken.
func offer(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case status.AppliedRevision == 0:
		return "Not synced yet"
	case isComparing(status):
		return "Comparing with the source"
	}
	workloads, others := changedWorkloads(status), Dependencies(status.ChangedDependencies)
	all := both(workloads, others)
	if IsCatalogDismissed(status) {
		workloads = ""
	}
	if AreDependenciesDismissed(status) {
		others = ""
	}
	switch shown := both(workloads, others); {
	case shown != "":
		return shown + " changed"
	case all != "":
		return "Dismissed: " + all + " changed"
	}
	return synced(status.WorkloadsReady)
}

// isComparing says whether what a sync would change is being found out, so that the counts are about what was there before.
func isComparing(status *v1alpha1.EnvironmentStatus) bool {
	found := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCatalogUpToDate)
	return found != nil && found.Reason == v1alpha1.ReasonProgressing
}

// both are two counts, of which each can be empty.
func both(workloads, others string) string {
	if workloads != "" && others != "" {
		return workloads + ", " + others
	}
	return workloads + others
}

// IsCatalogDismissed reports whether somebody has put aside what the catalog offers.
func IsCatalogDismissed(status *v1alpha1.EnvironmentStatus) bool {
	return status.DismissedCatalogSync != "" && status.DismissedCatalogSync == status.LatestCatalogSync
}

// AreDependenciesDismissed reports whether somebody has put aside what changes beside workloads: with the record that tells of it or,
// if none does, with what the catalog offers.
func AreDependenciesDismissed(status *v1alpha1.EnvironmentStatus) bool {
	return status.LatestDependencySync == "" && (status.DismissedDependencySync != "" || IsCatalogDismissed(status))
}

func changedWorkloads(status *v1alpha1.EnvironmentStatus) string {
	if status.ChangedWorkloadCount == 0 {
		return ""
	}
	return Count(int(status.ChangedWorkloadCount), "workload")
}

// Dependencies counts what workloads refer to by types, as in 2 ConfigMaps, 1 Secret.
func Dependencies(counts []v1alpha1.DependencyCount) string {
	numbers := map[string]int{}
	for _, changed := range counts {
		numbers[string(changed.Type)] = int(changed.Count)
	}
	return Counts(numbers)
}

// synced says that an environment holds what it should, which is not to say that it runs.
func synced(ready *v1alpha1.WorkloadsReady) string {
	if ready == nil || ready.Ready == ready.Total {
		return "Synced"
	}
	return fmt.Sprintf("Synced, %d of %s not ready", ready.Total-ready.Ready, Count(int(ready.Total), "workload"))
}

// pinned says that an environment stays at a revision, if it does.
func pinned(sentence string, revision *int64) string {
	if revision == nil {
		return sentence
	}
	return fmt.Sprintf("%s, pinned at r%d", sentence, *revision)
}

func holds(status *v1alpha1.EnvironmentStatus, condition string) bool {
	return apimeta.IsStatusConditionTrue(status.Conditions, condition)
}

// isPin says whether syncs wait because of a pin, which is said in any case.
func isPin(status *v1alpha1.EnvironmentStatus) bool {
	found := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld)
	return found != nil && found.Reason == v1alpha1.ReasonPinned
}

func messageOf(status *v1alpha1.EnvironmentStatus, condition string) string {
	if found := apimeta.FindStatusCondition(status.Conditions, condition); found != nil {
		return found.Message
	}
	return ""
}
