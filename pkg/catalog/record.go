// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// specOf tells the record of an occasion from all others.
func specOf(catalog *v1alpha1.AppCatalog, batch string) v1alpha1.SyncStatusSpec {
	return v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeCatalog, Batch: batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: catalog.Name, UID: catalog.UID},
	}
}

// over says whether an occasion needs nothing any more but its end: its record is about a revision that the catalog has
// shown since, or says what is to become of it.
func over(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	switch {
	case record == nil:
		return false
	case record.Status.State == v1alpha1.SyncStateRetrying:
		return false
	case record.Status.State == v1alpha1.SyncStateFailed, record.Status.State == v1alpha1.SyncStateManualIntervention:
		return true
	case record.Status.Preview:
		return !catalog.Spec.PreviewOnly
	}
	return record.Status.Revision <= catalog.Status.Revision
}

// begunToApply says whether the record of an occasion tells of a revision that the catalog does not show yet. Then there is
// no way back: neither a pause nor a preview that has been asked for meanwhile takes effect before it does.
func begunToApply(record *v1alpha1.SyncStatus) bool {
	return record != nil && !record.Status.Preview && record.Status.Revision > 0
}

// applied is the record of what a plan changes: the one that there is, with what is true now, or a new one of the name.
func applied(
	catalog *v1alpha1.AppCatalog, o occasion, p plan, existing *v1alpha1.SyncStatus, name string, now time.Time,
) (record *v1alpha1.SyncStatus, err error) {
	if existing != nil && existing.Status.Preview && p.preview {
		return existing, nil // What it tells of may have been noted as seen since.
	}
	step := syncstatus.Step{To: v1alpha1.SyncStateAutoApplied, At: now}
	if o.actor != "" {
		step.To, step.By = v1alpha1.SyncStateApplied, o.actor
	}
	switch {
	case existing == nil:
		record, err = begun(catalog, o, name, step)
	case existing.Status.State == v1alpha1.SyncStateRetrying:
		record, err = syncstatus.Move(existing, step)
	default:
		record = existing.DeepCopy()
	}
	if err != nil {
		return nil, err
	}
	if len(p.changes) > 0 {
		syncstatus.SetChanges(record, p.changes)
	}
	// Another process may have written it, which has seen more.
	syncstatus.AddAuthors(record, pending.ChangedBy(o.changes, p.changes))
	record.Status.Preview = p.preview
	switch {
	case p.preview:
	case len(p.changes) > 0 || begunToApply(existing):
		record.Status.Revision = catalog.Status.Revision + 1
	default: // What failed has been done with something else.
		record.Status.Revision = catalog.Status.Revision
	}
	return record, nil
}

func begun(catalog *v1alpha1.AppCatalog, o occasion, name string, first syncstatus.Step) (*v1alpha1.SyncStatus, error) {
	record, err := syncstatus.New(syncstatus.Beginning{
		Namespace: catalog.Namespace, Spec: specOf(catalog, o.batch), DetectedAt: o.detected, First: first,
	})
	if err != nil {
		return nil, err
	}
	record.Name = name
	return record, nil
}
