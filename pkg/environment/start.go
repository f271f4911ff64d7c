// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"context"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// ready prepares the records of a sync to be started, and returns them: the chosen one, and the open Dependency record if the sync also
// covers dependencies. Older records that the sync replaces are superseded.
func (r *reconciliation) ready(ctx context.Context, chosen *v1alpha1.SyncStatus) ([]*v1alpha1.SyncStatus, error) {
	for _, record := range r.state.overtaken(chosen) {
		if err := r.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return nil, err
		}
	}
	names := []string{chosen.Name}
	if open := r.state.dependency(); open != nil && open.Name != chosen.Name && actionOf(chosen) == v1alpha1.SyncActionAll && !r.state.isPartial(chosen) {
		names = append(names, open.Name)
	}
	records := make([]*v1alpha1.SyncStatus, len(names))
	for i, name := range names {
		if err := r.retry(ctx, r.state.called(name), chosen); err != nil {
			return nil, err
		}
		records[i] = r.state.called(name)
	}
	return records, nil
}

// retry moves a failed record to Retrying, to run together with the chosen one.
func (r *reconciliation) retry(ctx context.Context, record, chosen *v1alpha1.SyncStatus) error {
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
			return r.put(ctx, record)
		}
		return nil
	}
	return r.move(ctx, record, step, "")
}

// overtaken returns the older records that a sync replaces, of those that wait for a retry or for a user.
func (s *state) overtaken(by *v1alpha1.SyncStatus) []*v1alpha1.SyncStatus {
	if by.Spec.Type != v1alpha1.SyncTypeEnvironment {
		return nil
	}
	var out []*v1alpha1.SyncStatus
	for _, record := range s.open(v1alpha1.SyncTypeEnvironment) {
		waits := record.Status.State == v1alpha1.SyncStatePending || record.Status.State == v1alpha1.SyncStateInProgress
		if record.Name != by.Name && !waits && compareAges(record, by) <= 0 && s.replaces(by, record) {
			out = append(out, record)
		}
	}
	return out
}

// job returns the job of the records.
func (s *state) job(records []*v1alpha1.SyncStatus) syncer.Job {
	record := records[0]
	request := syncer.Request{
		Environment: s.environment, Action: actionOf(record), Force: record.Status.Force, Resolution: s.resolution(),
		Revision: s.revisionOf(record), Requester: s.requester(record),
	}
	if asked := s.request(record); asked != nil {
		request.Only = asked.Sync.Workloads
	}
	if s.environment.Spec.Shadow && isAutomatic(record) {
		request.Mode = syncer.ModeDryRun
	}
	return syncer.Job{Environment: s.environment, Records: records, Request: request}
}

// requester returns the user whose permissions a sync requires: the one who last requested it, or who turned on automatic syncs. If
// that user is unknown, the holder has no permissions.
func (s *state) requester(record *v1alpha1.SyncStatus) *access.Holder {
	if isAutomatic(record) && s.environment.Spec.AutoSync {
		return new(access.Automating(s.environment))
	}
	return new(access.Requesting(record.Status.RequestedBy))
}

// isAutomatic reports whether a record was created automatically and no user has requested it since.
func isAutomatic(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && record.Status.RequestedBy == nil
}

// revisionOf returns the catalog revision to sync for a record, 0 for the newest. A rollback keeps the revision of its edit.
func (s *state) revisionOf(record *v1alpha1.SyncStatus) int64 {
	switch {
	case syncstatus.IsEdit(record.Spec.Batch):
		return record.Status.Revision
	case record.Status.Force, actionOf(record) == v1alpha1.SyncActionCluster:
		return 0
	}
	return s.pinned()
}

// actionOf returns the action of a record.
func actionOf(record *v1alpha1.SyncStatus) v1alpha1.SyncAction {
	if record.Spec.Type == v1alpha1.SyncTypeDependency {
		return v1alpha1.SyncActionCluster
	}
	return cmp.Or(record.Status.Action, v1alpha1.SyncActionAll)
}
