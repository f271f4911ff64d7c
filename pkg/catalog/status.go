// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// defaultHistoryLimit is the length of status.history if spec.historyLimit is not set.
const defaultHistoryLimit = 10

// advance sets the next revision of a catalog in its status, with the entries and the SyncStatus of the revision.
func advance(catalog *v1alpha1.AppCatalog, entries []v1alpha1.CatalogEntry, record string, now time.Time) {
	status := &catalog.Status
	status.Revision++
	status.Workloads, status.LastSyncedAt, status.LatestSync = entries, seconds(now), record
	status.History = slices.Insert(slices.Clone(status.History), 0,
		v1alpha1.CatalogRevision{Revision: status.Revision, Time: *seconds(now), SyncStatus: record})
	status.History = status.History[:min(len(status.History), historyLimit(catalog))]
}

func historyLimit(catalog *v1alpha1.AppCatalog) int {
	if limit := catalog.Spec.HistoryLimit; limit != nil {
		return int(*limit)
	}
	return defaultHistoryLimit
}

// removePending removes a processed trigger from the pending edits and requests in the status.
func removePending(catalog *v1alpha1.AppCatalog, t trigger) {
	status := &catalog.Status
	if t.generation > 0 {
		status.ObservedGeneration = t.generation
		status.History = status.History[:min(len(status.History), historyLimit(catalog))]
		status.PendingEdits = slices.DeleteFunc(slices.Clone(status.PendingEdits), func(edit v1alpha1.CatalogEdit) bool {
			return !t.deferred && edit.Generation <= t.generation
		})
	}
	if t.request != "" {
		status.PendingSyncs = slices.DeleteFunc(slices.Clone(status.PendingSyncs), func(request v1alpha1.PendingCatalogSync) bool {
			return request.ID == t.request
		})
	}
}
