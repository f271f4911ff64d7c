// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// defaultHistoryLimit is that of a catalog that says nothing of it.
const defaultHistoryLimit = 10

// advance gives a catalog its next revision, of which a record tells.
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

// answer takes an occasion that is over from what people wait for.
func answer(catalog *v1alpha1.AppCatalog, o occasion) {
	status := &catalog.Status
	if o.generation > 0 {
		status.ObservedGeneration = o.generation
		status.History = status.History[:min(len(status.History), historyLimit(catalog))]
		status.PendingEdits = slices.DeleteFunc(slices.Clone(status.PendingEdits), func(edit v1alpha1.CatalogEdit) bool {
			return !o.later && edit.Generation <= o.generation
		})
	}
	if o.request != "" {
		status.PendingSyncs = slices.DeleteFunc(slices.Clone(status.PendingSyncs), func(request v1alpha1.PendingCatalogSync) bool {
			return request.ID == o.request
		})
	}
}
