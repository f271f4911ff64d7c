// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncrecord"
)

// attribute adds to a record who changed in the source what the run has brought, and the commits that hold it, as far as the
// catalog's records tell. Those may be gone; what a run takes back nobody has changed.
func (w *work) attribute(record *v1alpha1.SyncStatus) {
	brought := sets.New[workload]()
	for _, summary := range record.Status.ResourceSummaries {
		brought.Insert(workload{summary.Type, summary.Name})
	}
	for _, of := range w.between(record.Status.FromRevision, record.Status.Revision) {
		touched := slices.ContainsFunc(of.Status.ResourceSummaries, func(s v1alpha1.ResourceSummary) bool {
			return brought.Has(workload{s.Type, s.Name})
		})
		if touched {
			syncrecord.AddAuthors(record, of.Status.ChangedBy)
			syncrecord.AddCommits(record, of.Status.Commits)
		}
	}
}

// workload is what a change in the source and one in the environment have in common.
type workload struct{ kind, name string }

// between returns the catalog's records of the revisions after one and up to another.
func (w *work) between(from, to int64) []*v1alpha1.SyncStatus {
	ref := w.Environment.Spec.CatalogRef
	of := w.Catalogs.SyncStatuses(cmp.Or(ref.Namespace, w.Environment.Namespace))
	newest, err := of.Get(w.Environment.Status.LatestCatalogSync)
	if err != nil {
		return nil // Only who has the catalog's uid can tell its records from those of an earlier one.
	}
	all, err := of.List(labels.SelectorFromSet(syncrecord.Labels(newest.Spec)))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(r *v1alpha1.SyncStatus) bool {
		return r.Spec.Subject != newest.Spec.Subject || r.Status.Preview || r.Status.Revision <= from || r.Status.Revision > to
	})
}
