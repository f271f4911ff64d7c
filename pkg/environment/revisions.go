// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// pinnedRevision returns the revision to which an environment is pinned, 0 if there is none.
func pinnedRevision(e *v1alpha1.Environment) int64 {
	if revision := e.Spec.PinnedRevision; revision != nil {
		return *revision
	}
	return 0
}

// newestRevision returns the newest revision of a catalog, 0 if there is none. The catalog is nil if it does not exist.
func newestRevision(catalog *v1alpha1.AppCatalog) int64 {
	if catalog == nil {
		return 0
	}
	return catalog.Status.Revision
}

// isBehind reports whether an environment is known to differ from its catalog.
func isBehind(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog, offer *offer) bool {
	newest := newestRevision(catalog)
	if newest == 0 {
		return false
	}
	return e.Status.AppliedRevision != newest || offer != nil && offer.changes
}

// revisionOf returns the catalog revision to sync for a record, 0 for the newest. A rollback keeps the revision of its edit.
func revisionOf(e *v1alpha1.Environment, record *v1alpha1.SyncStatus) int64 {
	switch {
	case syncstatus.IsEdit(record.Spec.Batch):
		return record.Status.Revision
	case record.Status.Force, actionOf(record) == v1alpha1.SyncActionCluster:
		return 0
	}
	return pinnedRevision(e)
}

// syncOf returns the SyncStatus of a catalog revision, empty if it is no longer in the history.
func syncOf(catalog *v1alpha1.AppCatalog, revision int64) string {
	if catalog == nil {
		return ""
	}
	for _, entry := range catalog.Status.History {
		if entry.Revision == revision {
			return entry.SyncStatus
		}
	}
	if catalog.Status.Revision == revision {
		return catalog.Status.LatestSync
	}
	return ""
}
