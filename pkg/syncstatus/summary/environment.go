// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Environment returns the state of an environment: the current operation, or else the worst problem, or else the changes that can be
// synced, or else that it is synced.
func Environment(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case e.DeletionTimestamp != nil:
		return "Deleting"
	case status.ObservedGeneration == 0:
		return "Not looked at yet"
	case isTrue(status, v1alpha1.ConditionSyncing):
		return "Syncing"
	case e.Generation != status.ObservedGeneration:
		return applyingEdit(status.PendingEdits)
	}
	if sentence := problem(status); sentence != "" {
		return sentence
	}
	return pinned(changes(e), e.Spec.PinnedRevision)
}

// applyingEdit returns the state of an environment whose spec has not been processed yet.
func applyingEdit(edits []v1alpha1.EnvironmentEdit) string {
	if len(edits) == 0 {
		return "Taking over a change of the spec"
	}
	return "Taking over a change by " + edits[len(edits)-1].Actor
}

// failed returns the state of a failure. A message that already starts with Failed gets no prefix.
func failed(message string) string {
	if strings.HasPrefix(message, "Failed to ") {
		return Line(message)
	}
	return With("Failed", message)
}

// problem returns the worst problem that prevents an environment from being up to date. It is empty if there is none.
func problem(status *v1alpha1.EnvironmentStatus) string {
	switch {
	case len(status.Conflicts) > 0:
		return "Conflict: " + Count(conflictingFields(status.Conflicts), "field")
	case isTrue(status, v1alpha1.ConditionStalled) && !hasFailed(status):
		return With("Stalled", messageOf(status, v1alpha1.ConditionStalled))
	case status.LastError != nil:
		return failed(status.LastError.Message)
	case isTrue(status, v1alpha1.ConditionHeld) && !isPin(status):
		return With("Held", messageOf(status, v1alpha1.ConditionHeld))
	case isWithheld(status):
		return Line(messageOf(status, v1alpha1.ConditionDependenciesUpToDate))
	}
	return ""
}

// isWithheld reports whether some dependencies are no longer copied, because the catalog's editor is not allowed to read them, or that
// could not be checked.
func isWithheld(status *v1alpha1.EnvironmentStatus) bool {
	found := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
	return found != nil && (found.Reason == v1alpha1.ReasonPermissionLost || found.Reason == v1alpha1.ReasonUnreachable)
}

// hasFailed reports whether an environment is stalled because of a failed sync.
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

// changes returns the changes of the source that can be synced.
func changes(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case status.AppliedRevision == 0:
		return "Not synced yet"
	case isComparing(status):
		return "Comparing with the source"
	}
	workloads, others := changedWorkloads(status), Dependencies(status.ChangedDependencies)
	all := joinCounts(workloads, others)
	if IsCatalogDismissed(status) {
		workloads = ""
	}
	if AreDependenciesDismissed(status) {
		others = ""
	}
	switch shown := joinCounts(workloads, others); {
	case shown != "":
		return shown + " changed"
	case all != "":
		return "Dismissed: " + all + " changed"
	}
	return synced(status.WorkloadsReady)
}

// isComparing reports whether the changes of a sync are being computed, so that the counts in the status are outdated.
func isComparing(status *v1alpha1.EnvironmentStatus) bool {
	found := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCatalogUpToDate)
	return found != nil && found.Reason == v1alpha1.ReasonProgressing
}

// joinCounts joins two counts. Each can be empty.
func joinCounts(workloads, others string) string {
	if workloads != "" && others != "" {
		return workloads + ", " + others
	}
	return workloads + others
}

// IsCatalogDismissed reports whether a user has dismissed the changes of the catalog.
func IsCatalogDismissed(status *v1alpha1.EnvironmentStatus) bool {
	return status.DismissedCatalogSync != "" && status.DismissedCatalogSync == status.LatestCatalogSync
}

// AreDependenciesDismissed reports whether a user has dismissed the changes of dependencies: with their record or, if there is none, with
// the changes of the catalog.
func AreDependenciesDismissed(status *v1alpha1.EnvironmentStatus) bool {
	return status.LatestDependencySync == "" && (status.DismissedDependencySync != "" || IsCatalogDismissed(status))
}

func changedWorkloads(status *v1alpha1.EnvironmentStatus) string {
	if status.ChangedWorkloadCount == 0 {
		return ""
	}
	return Count(int(status.ChangedWorkloadCount), "workload")
}

// Dependencies returns the numbers of changed dependencies by type, as in 2 ConfigMaps, 1 Secret.
func Dependencies(counts []v1alpha1.DependencyCount) string {
	numbers := map[string]int{}
	for _, changed := range counts {
		numbers[string(changed.Type)] = int(changed.Count)
	}
	return Counts(numbers)
}

// synced returns the state of a synced environment, with the number of workloads that are not ready.
func synced(ready *v1alpha1.WorkloadsReady) string {
	if ready == nil || ready.Ready == ready.Total {
		return "Synced"
	}
	return fmt.Sprintf("Synced, %d of %s not ready", ready.Total-ready.Ready, Count(int(ready.Total), "workload"))
}

// pinned adds the pinned revision to a state, if there is one.
func pinned(sentence string, revision *int64) string {
	if revision == nil {
		return sentence
	}
	return fmt.Sprintf("%s, pinned at r%d", sentence, *revision)
}

func isTrue(status *v1alpha1.EnvironmentStatus, condition string) bool {
	return apimeta.IsStatusConditionTrue(status.Conditions, condition)
}

// isPin reports whether syncs are held because of a pin, which pinned adds in any case.
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
