// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// catalog returns why an environment does not hold what its catalog offers, or why that is unknown.
func (f *findings) catalog() conditions.Reason {
	status := &f.Status
	switch {
	case f.Obstacle.Code == v1alpha1.ReasonCatalogNotFound, f.Obstacle.Code == v1alpha1.ReasonCatalogNotReady:
		return f.Obstacle
	case status.AppliedRevision == 0:
		return neverSynced
	case f.Unplanned:
		return conditions.Reasonf(v1alpha1.ReasonProgressing, "What revision %d of the catalog would change is being determined",
			status.LatestRevision)
	case len(status.Conflicts) > 0:
		return f.conflicted()
	case f.isPinned() && *f.Spec.PinnedRevision != status.LatestRevision:
		return conditions.Reasonf(v1alpha1.ReasonPinned, "The catalog offers revision %d, and spec.pinnedRevision is %d",
			status.LatestRevision, *f.Spec.PinnedRevision)
	case status.ChangedWorkloadCount == 0:
		return conditions.Reason{}
	case summary.IsCatalogDismissed(status):
		return conditions.Reason{Code: v1alpha1.ReasonDismissed, Message: f.changedMessage() + ", which was dismissed"}
	}
	return conditions.Reason{Code: v1alpha1.ReasonWorkloadsChanged, Message: f.changedMessage()}
}

// neverSynced also applies after a sync of some workloads.
var neverSynced = conditions.Reason{Code: v1alpha1.ReasonNeverSynced, Message: "No sync of everything has completed yet"}

// changedMessage lists the workloads that the catalog would change.
func (f *findings) changedMessage() string {
	var names []string
	for _, change := range f.Status.ChangedWorkloads {
		names = append(names, fmt.Sprintf("%s %s", change.Kind, change.Name))
	}
	return fmt.Sprintf("Revision %d of the catalog changes %s: %s",
		f.Status.LatestRevision, summary.Count(int(f.Status.ChangedWorkloadCount), "workload"), summary.List(names))
}

func (f *findings) isPinned() bool { return f.Spec.PinnedRevision != nil }

// dependencies returns why dependencies differ from the source.
func (f *findings) dependencies() conditions.Reason {
	switch {
	case !f.Denied.IsZero():
		return f.Denied
	case f.Status.AppliedRevision == 0:
		return neverSynced
	case len(f.Missing) > 0:
		return conditions.Reason{
			Code: v1alpha1.ReasonDependenciesMissing, Message: "Not in the source, and kept as it was: " + summary.List(f.Missing),
		}
	case f.Unplanned && f.Status.LatestDependencySync != "":
		return conditions.Reasonf(v1alpha1.ReasonDependenciesChanged, "SyncStatus %s names what has changed in the source",
			f.Status.LatestDependencySync)
	case len(f.Status.ChangedDependencies) > 0 && summary.AreDependenciesDismissed(&f.Status):
		return conditions.Reason{Code: v1alpha1.ReasonDismissed, Message: f.dependenciesMessage() + ", which was dismissed"}
	case len(f.Status.ChangedDependencies) > 0:
		return conditions.Reason{Code: v1alpha1.ReasonDependenciesChanged, Message: f.dependenciesMessage()}
	case f.isPinned() && f.Status.LatestDependencySync != "":
		return conditions.Reasonf(v1alpha1.ReasonPinned,
			"What SyncStatus %s names has changed in the source, and is not brought while spec.pinnedRevision is %d",
			f.Status.LatestDependencySync, *f.Spec.PinnedRevision)
	}
	return conditions.Reason{}
}

// dependenciesMessage counts the objects other than workloads that a sync would change.
func (f *findings) dependenciesMessage() string {
	return "A sync changes " + summary.Dependencies(f.Status.ChangedDependencies)
}

// syncing returns the reason while a run is in progress.
func (f *findings) syncing() conditions.Reason {
	if f.Running == nil {
		return conditions.Reason{}
	}
	return conditions.Reasonf(v1alpha1.ReasonProgressing, "SyncStatus %s says how far the sync has come", f.Running.Name)
}

// missingObjects lists the objects that the target lacks and the server does not copy.
func (f *findings) missingObjects() conditions.Reason {
	var lacking, unreadable []string
	for _, object := range f.Status.NotCopied {
		if object.Reason == v1alpha1.NotCopiedUnreadable {
			unreadable = append(unreadable, object.Kind+"s")
			continue
		}
		lacking = append(lacking, object.Kind+" "+object.Name)
	}
	switch {
	case len(lacking) > 0:
		return conditions.Reasonf(v1alpha1.ReasonNotCopied,
			"%s lacks what the server does not copy: %s; kubectl slipstream missing %s -n %s prints it",
			f.Spec.TargetNamespace, summary.List(lacking), f.Name, f.Namespace)
	case len(unreadable) > 0:
		return conditions.Reasonf(v1alpha1.ReasonUnreadable,
			"Whether ServiceAccounts have the rights that they have in the source is not known: "+
				"the server may not list %s", summary.List(unreadable))
	}
	return conditions.Reason{}
}

// conflicted lists the workloads whose conflicts a user must resolve.
func (f *findings) conflicted() conditions.Reason {
	if len(f.Status.Conflicts) == 0 {
		return conditions.Reason{}
	}
	fields, names := 0, make([]string, len(f.Status.Conflicts))
	for i, conflict := range f.Status.Conflicts {
		fields, names[i] = fields+len(conflict.Fields), fmt.Sprintf("%s %s", conflict.Kind, conflict.Name)
	}
	return conditions.Reasonf(v1alpha1.ReasonFieldsChangedTwice,
		"%s changed here and in the catalog, until the subresource resolve says what to do, of %s",
		summary.Count(fields, "field"), summary.List(names))
}

// ready returns why an environment is not as its spec requires, the most severe reason first.
func (f *findings) ready() conditions.Reason {
	status := &f.Status
	switch {
	case f.DeletionTimestamp != nil && f.isExpired():
		return conditions.Reason{
			Code: v1alpha1.ReasonExpired, Message: f.deletionMessage("The environment is being deleted, as its spec.ttl is over"),
		}
	case f.DeletionTimestamp != nil:
		return conditions.Reason{Code: v1alpha1.ReasonProgressing, Message: f.deletionMessage("The environment is being deleted")}
	case !f.Obstacle.IsZero():
		return f.Obstacle
	case f.Running != nil:
		return f.syncing()
	case len(status.Conflicts) > 0:
		return f.conflicted()
	case status.LastError != nil:
		return conditions.Reason{Code: v1alpha1.ReasonSyncFailed, Message: status.LastError.Message}
	case f.Held.Code == v1alpha1.ReasonPermissionLost:
		return f.Held
	case f.isWaiting():
		return conditions.Reason{Code: v1alpha1.ReasonProgressing, Message: "A sync is about to begin: " + strings.Join(status.ActiveSyncs, ", ")}
	case status.AppliedRevision == 0:
		return neverSynced
	case f.isPinned() && status.AppliedRevision != *f.Spec.PinnedRevision:
		return conditions.Reasonf(v1alpha1.ReasonPinned, "The environment holds revision %d, and spec.pinnedRevision is %d",
			status.AppliedRevision, *f.Spec.PinnedRevision)
	}
	return f.workloads()
}

// deletionMessage adds the remaining objects to a message about the deletion.
func (f *findings) deletionMessage(sentenceAbout string) string {
	return summary.With(sentenceAbout, summary.List(f.Remaining))
}

// isExpired reports whether the environment's ttl is over.
func (f *findings) isExpired() bool {
	return f.Status.ExpiresAt != nil && !f.Status.ExpiresAt.After(f.now)
}

// isWaiting reports whether a run is queued and not held back.
func (f *findings) isWaiting() bool { return len(f.Status.ActiveSyncs) > 0 && f.Held.IsZero() }

// workloads returns why applied workloads are not ready.
func (f *findings) workloads() conditions.Reason {
	ready := f.Status.WorkloadsReady
	switch {
	case ready == nil:
		return conditions.Reason{
			Code: v1alpha1.ReasonProgressing, Message: summary.With("Whether workloads run is not known yet", summary.List(f.NotReady)),
		}
	case ready.Ready == ready.Total:
		return conditions.Reason{}
	}
	return conditions.Reason{Code: v1alpha1.ReasonWorkloadsNotReady, Message: summary.With(
		fmt.Sprintf("%d of %s not ready", ready.Total-ready.Ready, summary.Count(int(ready.Total), "workload")), summary.List(f.NotReady))}
}

// isReconciling reports whether the server continues to work on what keeps an environment from being ready.
func (f *findings) isReconciling(ready conditions.Reason) bool {
	switch ready.Code {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonExpired, v1alpha1.ReasonCatalogNotReady:
		return true
	case v1alpha1.ReasonSyncFailed:
		return !f.GivenUp
	}
	return false
}

// isStalled reports whether a user must act before an environment can be ready.
func (f *findings) isStalled(ready conditions.Reason) bool {
	switch ready.Code {
	case "", v1alpha1.ReasonNeverSynced, v1alpha1.ReasonWorkloadsNotReady:
		return false
	}
	return !f.isReconciling(ready)
}
