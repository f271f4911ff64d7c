// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// What an environment can wait for until it is in sync.
const (
	WaitsForUser       = "you"
	waitsForSync       = "sync"
	waitsForServer     = "server"
	waitsForRetry      = "retry"
	waitsForCatalog    = "catalog"
	waitsForSource     = "source"
	waitsForWindow     = "window"
	waitsForUnpin      = "unpin"
	waitsForPolicy     = "policy"
	waitsForRateLimit  = "rate limit"
	waitsForPermission = "permission"
	waitsForNewer      = "newer change"
	waitsForWorkloads  = "workloads"
	waitsForDeletion   = "deletion"
)

// WaitsFor returns in a word what an environment waits for until it equals what its catalog offers and its workloads are ready. It is
// "you" if a user has to act, and empty if the environment is in sync.
func WaitsFor(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case e.DeletionTimestamp != nil:
		return waitsForDeletion
	case status.ObservedGeneration == 0:
		return waitsForServer
	case isTrue(status, v1alpha1.ConditionSyncing):
		return waitsForSync
	case e.Generation != status.ObservedGeneration:
		return waitsForServer
	}
	if cause := waitsForCause(e); cause != "" {
		return cause
	}
	return waitsForChanges(e)
}

// waitsForCause returns what ends the problem of an environment. It is empty if there is none.
func waitsForCause(e *v1alpha1.Environment) string {
	status := &e.Status
	switch {
	case len(status.Conflicts) > 0:
		return WaitsForUser
	case reasonIn(status, v1alpha1.ConditionHeld) == v1alpha1.ReasonSuspended && !e.Spec.AutoSync:
		return WaitsForUser
	case isTrue(status, v1alpha1.ConditionHeld) && !isTrue(status, v1alpha1.ConditionStalled):
		return waitsForEndOf(reasonIn(status, v1alpha1.ConditionHeld))
	case isTrue(status, v1alpha1.ConditionStalled):
		return waitsForEndOf(reasonIn(status, v1alpha1.ConditionStalled))
	case status.LastError != nil:
		return waitsForRetry
	case isWithheld(status):
		return waitsForEndOf(reasonIn(status, v1alpha1.ConditionDependenciesUpToDate))
	}
	return ""
}

// waitsForEndOf returns what ends a state with a reason of a condition: a user, unless it ends by itself or by another one's action.
func waitsForEndOf(reason string) string {
	switch reason {
	case v1alpha1.ReasonWindowClosed:
		return waitsForWindow
	case v1alpha1.ReasonPinned:
		return waitsForUnpin
	case v1alpha1.ReasonSuspended:
		return waitsForPolicy
	case v1alpha1.ReasonRateLimited:
		return waitsForRateLimit
	case v1alpha1.ReasonPermissionLost:
		return waitsForPermission
	case v1alpha1.ReasonUnreachable:
		return waitsForSource
	case v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonCatalogNotReady:
		return waitsForCatalog
	}
	return WaitsForUser
}

// waitsForChanges returns what has to happen for the changes of an environment without problems to be applied.
func waitsForChanges(e *v1alpha1.Environment) string {
	status := &e.Status
	workloads, others := status.ChangedWorkloadCount > 0, len(status.ChangedDependencies) > 0
	dismissed := (!workloads || IsCatalogDismissed(status)) && (!others || AreDependenciesDismissed(status))
	switch upToDate := reasonIn(status, v1alpha1.ConditionCatalogUpToDate); {
	case reasonIn(status, v1alpha1.ConditionReady) == v1alpha1.ReasonCatalogNotReady:
		return waitsForCatalog
	case len(status.ActiveSyncs) > 0 && reasonIn(status, v1alpha1.ConditionReady) == v1alpha1.ReasonProgressing:
		return waitsForSync
	case status.AppliedRevision > 0 && isComparing(status):
		return waitsForServer
	case upToDate == v1alpha1.ReasonPinned, e.Spec.PinnedRevision != nil && others:
		return waitsForUnpin
	case status.AppliedRevision == 0, (workloads || others) && !dismissed:
		return waitsForStart(&e.Spec)
	case workloads || others:
		return waitsForNewer
	case reasonIn(status, v1alpha1.ConditionDependenciesUpToDate) == v1alpha1.ReasonDependenciesMissing:
		return waitsForSource
	case !isTrue(status, v1alpha1.ConditionReady):
		return waitsForWorkloads
	}
	return ""
}

// waitsForStart returns sync if changes are applied automatically, else you.
func waitsForStart(spec *v1alpha1.EnvironmentSpec) string {
	if spec.AutoSync && !spec.Shadow {
		return waitsForSync
	}
	return WaitsForUser
}

// reasonIn returns the reason of a condition, empty if there is no such condition.
func reasonIn(status *v1alpha1.EnvironmentStatus, condition string) string {
	if found := apimeta.FindStatusCondition(status.Conditions, condition); found != nil {
		return found.Reason
	}
	return ""
}
