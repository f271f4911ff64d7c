// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// catalog returns why an environment does not hold what its catalog offers, or why that is unknown.
func (f *findings) catalog() Why {
	status := &f.Status
	switch {
	case f.Obstacle.Reason == v1alpha1.ReasonCatalogNotFound, f.Obstacle.Reason == v1alpha1.ReasonCatalogNotReady:
		return f.Obstacle
	case status.AppliedRevision == 0:
		return neverSynced
	case f.Unplanned:
		return Why{v1alpha1.ReasonProgressing, fmt.Sprintf("What revision %d of the catalog would change is being found out", status.LatestRevision)}
	case len(status.Conflicts) > 0:
		return f.conflicted()
	case f.isPinned() && *f.Spec.PinnedRevision != status.LatestRevision:
		return Why{v1alpha1.ReasonPinned, fmt.Sprintf("The catalog offers revision %d, and spec.pinnedRevision is %d",
			status.LatestRevision, *f.Spec.PinnedRevision)}
	case status.ChangedWorkloadCount == 0:
		return Why{}
	case summary.IsCatalogDismissed(status):
		return Why{v1alpha1.ReasonDismissed, f.changedMessage() + ", which was put aside"}
	}
	return Why{v1alpha1.ReasonWorkloadsChanged, f.changedMessage()}
}

// neverSynced also applies after a sync of some workloads.
var neverSynced = Why{v1alpha1.ReasonNeverSynced, "No sync of everything has completed yet"}

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
func (f *findings) dependencies() Why {
	switch {
	case !f.Denied.ok():
		return f.Denied
	case f.Status.AppliedRevision == 0:
		return neverSynced
	case len(f.Missing) > 0:
		return Why{v1alpha1.ReasonDependenciesMissing, "Not in the source, and kept as it was: " + summary.List(f.Missing)}
	case f.Unplanned && f.Status.LatestDependencySync != "":
		return Why{v1alpha1.ReasonDependenciesChanged, fmt.Sprintf("SyncStatus %s names what has changed in the source", f.Status.LatestDependencySync)}
	case len(f.Status.ChangedDependencies) > 0 && summary.AreDependenciesDismissed(&f.Status):
		return Why{v1alpha1.ReasonDismissed, f.dependenciesMessage() + ", which was put aside"}
	case len(f.Status.ChangedDependencies) > 0:
		return Why{v1alpha1.ReasonDependenciesChanged, f.dependenciesMessage()}
	case f.isPinned() && f.Status.LatestDependencySync != "":
		return Why{v1alpha1.ReasonPinned, fmt.Sprintf("What SyncStatus %s names has changed in the source, and is not brought while spec.pinnedRevision is %d",
			f.Status.LatestDependencySync, *f.Spec.PinnedRevision)}
	}
	return Why{}
}

// dependenciesMessage counts the objects other than workloads that a sync would change.
func (f *findings) dependenciesMessage() string {
	return "A sync changes " + summary.Dependencies(f.Status.ChangedDependencies)
}

// syncing returns the reason while a run is in progress.
func (f *findings) syncing() Why {
	if f.Running == nil {
		return Why{}
	}
	return Why{v1alpha1.ReasonProgressing, fmt.Sprintf("SyncStatus %s says how far the sync has come", f.Running.Name)}
}

// missingObjects lists the objects that the target lacks and the server does not copy.
func (f *findings) missingObjects() Why {
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
		return Why{v1alpha1.ReasonNotCopied, fmt.Sprintf("%s lacks what the server does not copy: %s; kubectl slipstream missing %s -n %s prints it",
			f.Spec.TargetNamespace, summary.List(lacking), f.Name, f.Namespace)}
	case len(unreadable) > 0:
		return Why{v1alpha1.ReasonUnreadable, fmt.Sprintf("Whether ServiceAccounts have the rights that they have in the source is not known: "+
			"the server may not list %s", summary.List(unreadable))}
	}
	return Why{}
}

// conflicted lists the workloads whose conflicts a user must resolve.
func (f *findings) conflicted() Why {
	if len(f.Status.Conflicts) == 0 {
		return Why{}
	}
	fields, names := 0, make([]string, len(f.Status.Conflicts))
	for i, conflict := range f.Status.Conflicts {
		fields, names[i] = fields+len(conflict.Fields), fmt.Sprintf("%s %s", conflict.Kind, conflict.Name)
	}
	return Why{v1alpha1.ReasonFieldsChangedTwice, fmt.Sprintf("%s changed here and in the catalog, until the subresource resolve says what to do, of %s",
		summary.Count(fields, "field"), summary.List(names))}
}

// ready returns why an environment is not as its spec requires, the most severe reason first.
func (f *findings) ready() Why {
	status := &f.Status
	switch {
	case f.DeletionTimestamp != nil && f.isExpired():
		return Why{v1alpha1.ReasonExpired, f.deletionMessage("The environment is being deleted, as its spec.ttl is over")}
	case f.DeletionTimestamp != nil:
		return Why{v1alpha1.ReasonProgressing, f.deletionMessage("The environment is being deleted")}
	case !f.Obstacle.ok():
		return f.Obstacle
	case f.Running != nil:
		return f.syncing()
	case len(status.Conflicts) > 0:
		return f.conflicted()
	case status.LastError != nil:
		return Why{v1alpha1.ReasonSyncFailed, status.LastError.Message}
	case f.Held.Reason == v1alpha1.ReasonPermissionLost:
		return f.Held
	case f.isWaiting():
		return Why{v1alpha1.ReasonProgressing, "A sync is about to begin: " + strings.Join(status.ActiveSyncs, ", ")}
	case status.AppliedRevision == 0:
		return neverSynced
	case f.isPinned() && status.AppliedRevision != *f.Spec.PinnedRevision:
		return Why{v1alpha1.ReasonPinned, fmt.Sprintf("The environment holds revision %d, and spec.pinnedRevision is %d",
			status.AppliedRevision, *f.Spec.PinnedRevision)}
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
func (f *findings) isWaiting() bool { return len(f.Status.ActiveSyncs) > 0 && f.Held.ok() }

// workloads returns why applied workloads are not ready.
func (f *findings) workloads() Why {
	ready := f.Status.WorkloadsReady
	switch {
	case ready == nil:
		return Why{v1alpha1.ReasonProgressing, summary.With("Whether workloads run is not known yet", summary.List(f.NotReady))}
	case ready.Ready == ready.Total:
		return Why{}
	}
	return Why{v1alpha1.ReasonWorkloadsNotReady, summary.With(
		fmt.Sprintf("%d of %s not ready", ready.Total-ready.Ready, summary.Count(int(ready.Total), "workload")), summary.List(f.NotReady))}
}

// isReconciling reports whether the server continues to work on what keeps an environment from being ready.
func (f *findings) isReconciling(ready Why) bool {
	switch ready.Reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonExpired, v1alpha1.ReasonCatalogNotReady:
		return true
	case v1alpha1.ReasonSyncFailed:
		return !f.GivenUp
	}
	return false
}

// isStalled reports whether a user must act before an environment can be ready.
func (f *findings) isStalled(ready Why) bool {
	switch ready.Reason {
	case "", v1alpha1.ReasonNeverSynced, v1alpha1.ReasonWorkloadsNotReady:
		return false
	}
	return !f.isReconciling(ready)
}
