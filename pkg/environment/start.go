// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// ready prepares the records of a sync to be started, and returns them: the chosen one, and the open Dependency record if the sync also
// covers dependencies. Older records that the sync replaces are superseded.
func (w *recordWriter) ready(ctx context.Context, chosen *v1alpha1.SyncStatus) ([]*v1alpha1.SyncStatus, error) {
	requests := w.state.requests()
	for _, record := range w.state.records.overtaken(chosen, requests) {
		if err := w.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return nil, err
		}
	}
	names := []string{chosen.Name}
	// A pinned revision, or that of an edit, is applied with the dependencies that it had when it was first applied.
	coversAll := actionOf(chosen) == v1alpha1.SyncActionAll && !requests.isPartial(chosen) && revisionOf(w.state.environment, chosen) == 0
	if open := w.state.records.dependency(requests); coversAll && open != nil && open.Name != chosen.Name {
		names = append(names, open.Name)
	}
	records := make([]*v1alpha1.SyncStatus, len(names))
	for i, name := range names {
		if err := w.retry(ctx, w.state.records.named(name), chosen); err != nil {
			return nil, err
		}
		records[i] = w.state.records.named(name)
	}
	return records, nil
}

// retry moves a failed record to Retrying, to run together with the chosen one.
func (w *recordWriter) retry(ctx context.Context, record, chosen *v1alpha1.SyncStatus) error {
	joins := record.Name != chosen.Name && chosen.Status.RequestedBy != nil
	if joins {
		record = record.DeepCopy()
		record.Status.RequestedBy = chosen.Status.RequestedBy.DeepCopy()
	}
	step := syncstatus.Step{To: v1alpha1.SyncStateRetrying}
	switch record.Status.State {
	case v1alpha1.SyncStateFailed:
	case v1alpha1.SyncStateManualIntervention:
		if step.By = chosen.Status.Actor; step.By == "" {
			return nil
		}
	default:
		if joins { // After a crash, the record continues with the permissions it was started with.
			return w.put(ctx, record)
		}
		return nil
	}
	return w.move(ctx, record, step, "")
}

// newJob returns the job of the records.
func newJob(e *v1alpha1.Environment, records []*v1alpha1.SyncStatus) syncer.Job {
	record, requests := records[0], requests(e.Status.PendingRequests)
	request := syncer.Request{
		Environment: e, Action: actionOf(record), Force: record.Status.Force, Resolution: requests.resolution(),
		Revision: revisionOf(e, record), Requester: holderOf(e, record),
	}
	if asked := requests.of(record); asked != nil {
		request.Only = asked.Sync.Workloads
	}
	if e.Spec.Shadow && isAutomatic(record) {
		request.Mode = syncer.ModeDryRun
	}
	return syncer.Job{Environment: e, Records: records, Request: request}
}

// holderOf returns the user whose permissions a sync requires: the one who last requested it, or who turned on automatic syncs. If
// that user is unknown, the holder has no permissions.
func holderOf(e *v1alpha1.Environment, record *v1alpha1.SyncStatus) *access.Holder {
	if isAutomatic(record) && e.Spec.AutoSync {
		return new(access.Automating(e))
	}
	return new(access.Requesting(record.Status.RequestedBy))
}
