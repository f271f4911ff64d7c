// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// attribute adds to a record who changed in the source what the run has brought, and the commits that hold it, as far as the
// catalog's records tell. Those may be gone; what a run takes back nobody has changed.
func (w *work) attribute(ctx context.Context, record *v1alpha1.SyncStatus) {
	brought := sets.New[workload]()
	for _, summary := range record.Status.ResourceSummaries {
		brought.Insert(workload{summary.Type, summary.Name})
	}
	for _, of := range w.between(ctx, record.Status.FromRevision, record.Status.Revision) {
		touched := slices.ContainsFunc(of.Status.ResourceSummaries, func(s v1alpha1.ResourceSummary) bool {
			return brought.Has(workload{s.Type, s.Name})
		})
		if touched {
			syncstatus.AddAuthors(record, of.Status.ChangedBy)
			syncstatus.AddCommits(record, of.Status.Commits)
		}
	}
}

// workload is what a change in the source and one in the environment have in common.
type workload struct{ kind, name string }

// between returns the records of the revisions after one and up to another, of those that the catalog can go back to.
func (w *work) between(ctx context.Context, from, to int64) []*v1alpha1.SyncStatus {
	ref := w.Environment.Spec.CatalogRef
	namespace := cmp.Or(ref.Namespace, w.Environment.Namespace)
	catalog, err := w.Catalogs.AppCatalogs(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	var records []*v1alpha1.SyncStatus
	for _, revision := range catalog.Status.History {
		if revision.Revision <= from || revision.Revision > to {
			continue
		}
		record, err := w.SyncStatuses.SyncStatuses(namespace).Get(ctx, revision.SyncStatus, metav1.GetOptions{})
		if err == nil && record.Spec.Subject.UID == catalog.UID {
			records = append(records, record)
		}
	}
	return records
}
