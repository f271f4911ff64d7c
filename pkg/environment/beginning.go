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

// ready brings the records of a run to where it can begin, and returns them: that which was chosen, and the one about dependencies
// if the run brings these as well. What the run does in the place of others is not tried again.
func (t *turning) ready(ctx context.Context, chosen *v1alpha1.SyncStatus) ([]*v1alpha1.SyncStatus, error) {
	for _, record := range t.overtaken(chosen) {
		if err := t.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return nil, err
		}
	}
	names := []string{chosen.Name}
	if open := t.dependency(); open != nil && open.Name != chosen.Name && actionOf(chosen) == v1alpha1.SyncActionAll && !t.isPartial(chosen) {
		names = append(names, open.Name)
	}
	records := make([]*v1alpha1.SyncStatus, len(names))
	for i, name := range names {
		if err := t.retry(ctx, t.called(name), chosen); err != nil {
			return nil, err
		}
		records[i] = t.called(name)
	}
	return records, nil
}

// retry has a record that has failed be tried again, with the run of the chosen one.
func (t *turning) retry(ctx context.Context, record, chosen *v1alpha1.SyncStatus) error {
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
		if joins { // Should the process die, the record is continued by whose permissions it began.
			return t.put(ctx, record)
		}
		return nil
	}
	return t.move(ctx, record, step, "")
}

// overtaken are the records of earlier runs whose place a run takes, of those that wait for another attempt or for somebody.
func (s *situation) overtaken(by *v1alpha1.SyncStatus) []*v1alpha1.SyncStatus {
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

// job is the run that records stand for.
func (s *situation) job(records []*v1alpha1.SyncStatus) syncer.Job {
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

// requester returns the user who must have the permission to read the Secrets that a record's run copies: the one who asked for the
// run last, or who turned automatic syncs on. If that user is not known, the holder has no permissions.
func (s *situation) requester(record *v1alpha1.SyncStatus) *access.Holder {
	if isAutomatic(record) && s.environment.Spec.AutoSync {
		return new(access.Automating(s.environment))
	}
	return new(access.Requesting(record.Status.RequestedBy))
}

// isAutomatic says whether a record's run is the server's own, and no user has asked for it since.
func isAutomatic(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && record.Status.RequestedBy == nil
}

// revisionOf is the one that a record's run brings, 0 for the newest. That of an edit stays the one that it has asked for.
func (s *situation) revisionOf(record *v1alpha1.SyncStatus) int64 {
	switch {
	case syncstatus.IsEdit(record.Spec.Batch):
		return record.Status.Revision
	case record.Status.Force, actionOf(record) == v1alpha1.SyncActionCluster:
		return 0
	}
	return s.pinned()
}

// actionOf is what a record's run does.
func actionOf(record *v1alpha1.SyncStatus) v1alpha1.SyncAction {
	if record.Spec.Type == v1alpha1.SyncTypeDependency {
		return v1alpha1.SyncActionCluster
	}
	return cmp.Or(record.Status.Action, v1alpha1.SyncActionAll)
}
