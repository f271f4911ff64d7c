// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// specOf returns the spec of the SyncStatus of a batch. It is different for each trigger of each catalog.
func specOf(catalog *v1alpha1.AppCatalog, batch string) v1alpha1.SyncStatusSpec {
	return v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeCatalog, Batch: batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: catalog.Name, UID: catalog.UID},
	}
}

// completed reports whether only the end of an update is left to do for the trigger of a record: the status of the catalog shows the
// revision of the record, or the record reports a failure and when it is retried.
func completed(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
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

// applying reports whether a record reports a revision. Until the status of the catalog shows that revision, the update must be completed:
// a pause or preview that was requested meanwhile takes effect afterwards.
func applying(record *v1alpha1.SyncStatus) bool {
	return record != nil && !record.Status.Preview && record.Status.Revision > 0
}

// appliedRecord returns the SyncStatus of a task with the changes of a plan: the existing one, updated, or a new one.
func appliedRecord(t *task, p plan, now time.Time) (record *v1alpha1.SyncStatus, err error) {
	existing := t.record
	if existing != nil && existing.Status.Preview && p.preview {
		return existing, nil // An earlier attempt may already have stored its changes as observed, so p may lack them.
	}
	step := syncstatus.Step{To: v1alpha1.SyncStateAutoApplied, At: now}
	if t.trigger.actor != "" {
		step.To, step.By = v1alpha1.SyncStateApplied, t.trigger.actor
	}
	switch {
	case existing == nil:
		record, err = t.newRecord(step)
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
	// Authors are added, not replaced: the process that wrote the record may have known more of them.
	syncstatus.AddAuthors(record, pending.ChangedBy(t.trigger.changes, p.changes))
	record.Status.Preview = p.preview
	switch {
	case p.preview:
	case len(p.changes) > 0 || applying(existing):
		record.Status.Revision = t.catalog.Status.Revision + 1
	default: // The change that failed was applied with another trigger.
		record.Status.Revision = t.catalog.Status.Revision
	}
	return record, nil
}

// newRecord returns the first version of the SyncStatus of a task.
func (t *task) newRecord(first syncstatus.Step) (*v1alpha1.SyncStatus, error) {
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: t.catalog.Namespace, Spec: specOf(t.catalog, t.trigger.batch), DetectedAt: t.trigger.detected, First: first,
	})
	if err != nil {
		return nil, err
	}
	record.Name = t.name
	return record, nil
}
