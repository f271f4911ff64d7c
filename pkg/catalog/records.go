// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// unfinished returns the records of a catalog that the server has to resume, or that need manual intervention, oldest first. A record
// with a revision that the status of the catalog does not show was interrupted.
func (r *reconciler) unfinished(catalog *v1alpha1.AppCatalog) []*v1alpha1.SyncStatus {
	out := slices.DeleteFunc(r.lister.records(catalog), func(record *v1alpha1.SyncStatus) bool {
		return !failed(record) && (!applying(record) || completed(record, catalog))
	})
	slices.SortFunc(out, compareDetection)
	return out
}

func compareDetection(a, b *v1alpha1.SyncStatus) int {
	return a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time)
}

// failed reports whether a record has not been applied because of an error.
func failed(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return false
}

// outdated reports whether a record is about an edit that a later edit has replaced.
func outdated(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	batch := record.Spec.Batch
	return syncstatus.IsEdit(batch) && batch != syncstatus.EditBatch(catalog.Status.ObservedGeneration)
}

// failureOf returns why a catalog does not offer what its spec selects: a lost permission of its editor, or the newest failure that has
// not been resolved, including dismissed ones.
func (r *reconciler) failureOf(catalog *v1alpha1.AppCatalog) conditions.Reason {
	if lost := r.permissionLost.get(catalog.UID); !lost.IsZero() {
		return lost
	}
	out := r.updater.blocked.get(catalog.UID)
	records := r.lastWritten(catalog)
	slices.SortFunc(records, compareDetection)
	for _, record := range records {
		if (failed(record) || dismissedUnresolved(record, catalog)) && record.Status.Error != nil && !outdated(record, catalog) {
			out = conditions.Reason{Code: record.Status.Error.Reason, Message: record.Status.Error.Message}
		}
	}
	return out
}

// lastWritten returns the records of a catalog as they were last written, also while the informer's cache is behind.
func (r *reconciler) lastWritten(catalog *v1alpha1.AppCatalog) []*v1alpha1.SyncStatus {
	return r.written.merge(r.lister.records(catalog), catalog.UID)
}

// dismissedUnresolved reports whether a user has dismissed a record while the catalog was stalled, and it still is. Dismissing a record
// does not resolve its failure. A comparison of everything without a failure does.
func dismissedUnresolved(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	since := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionStalled)
	return record.Status.State == v1alpha1.SyncStateDismissed && record.Status.ResolvedAt != nil &&
		since != nil && !since.LastTransitionTime.After(record.Status.ResolvedAt.Time)
}
