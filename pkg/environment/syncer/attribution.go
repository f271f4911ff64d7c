// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// attribute adds to a record the authors of the source changes that the run has applied, and the commits that contain them, as far as
// the catalog's records still exist. A rollback has no authors.
func (x *execution) attribute(ctx context.Context, record *v1alpha1.SyncStatus) {
	brought := sets.New[workload]()
	for _, summary := range record.Status.ResourceSummaries {
		brought.Insert(workload{summary.Type, summary.Name})
	}
	for _, of := range x.between(ctx, record.Status.FromRevision, record.Status.Revision) {
		touched := slices.ContainsFunc(of.Status.ResourceSummaries, func(s v1alpha1.ResourceSummary) bool {
			return brought.Has(workload{s.Type, s.Name})
		})
		if touched {
			syncstatus.AddAuthors(record, of.Status.ChangedBy)
			syncstatus.AddCommits(record, of.Status.Commits)
		}
	}
}

// workload identifies a workload in both the source and the environment.
type workload struct{ kind, name string }

// between returns the records of the revisions after from up to and including to, as far as they are in the history of the catalog.
func (x *execution) between(ctx context.Context, from, to int64) []*v1alpha1.SyncStatus {
	name := x.job.Environment.Spec.CatalogRef.NamespacedName(x.job.Environment.Namespace)
	catalog, err := x.executor.Catalogs.AppCatalogs(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	var records []*v1alpha1.SyncStatus
	for _, revision := range catalog.Status.History {
		if revision.Revision <= from || revision.Revision > to {
			continue
		}
		record, err := x.executor.SyncStatuses.SyncStatuses(name.Namespace).Get(ctx, revision.SyncStatus, metav1.GetOptions{})
		if err == nil && record.Spec.Subject.UID == catalog.UID {
			records = append(records, record)
		}
	}
	return records
}
