// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// reconciliation is one reconcile of an environment. Each of its writes is idempotent.
type reconciliation struct {
	environments *environments
	state        *state
}

// updateRecords creates and updates records for what users and the spec request.
func (r *reconciliation) updateRecords(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.requireIntervention, r.rediscover, r.refresh, r.resolve, r.ensureDesired, r.overtake} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// requireIntervention moves records without attempts left to ManualIntervention.
func (r *reconciliation) requireIntervention(ctx context.Context) error {
	for _, record := range slices.Clone(r.state.records) {
		if record.Status.State != v1alpha1.SyncStateFailed {
			continue
		}
		if _, left := syncstatus.NextAttempt(record, r.state.policy.Retry); left {
			continue
		}
		if err := r.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateManualIntervention}, ""); err != nil {
			return err
		}
		r.environments.events.gaveUp(r.state.environment, r.state.called(record.Name))
	}
	return nil
}

// rediscover discovers the dependencies of the workloads again if a user has requested it. It waits for a sync in progress, which
// discovers them as well. A failure is retried by the next reconcile and does not stop this one.
func (r *reconciliation) rediscover(ctx context.Context) error {
	asked := map[string]bool{}
	for _, request := range r.state.environment.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestRediscover {
			asked[request.ID] = true
		}
	}
	if len(asked) == 0 || r.state.syncing || !r.state.obstacle.IsZero() {
		return nil
	}
	if r.state.undone = r.environments.detector.Rediscover(ctx, nameOf(r.state.environment)); r.state.undone == nil {
		r.state.rediscovered = asked
		r.environments.sources.add(nameOf(r.state.environment)) // What the index names belongs to the action Cluster.
	}
	return nil
}

// refresh processes the oldest request to refresh dependencies. The open Dependency record is assigned to its user, or a new one is
// created; a request for some workloads has a record of its own. The next request is processed when that record has ended or
// requires manual intervention.
func (r *reconciliation) refresh(ctx context.Context) error {
	requests := r.state.environment.Status.PendingRequests
	at := slices.IndexFunc(requests, func(request v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&request) && !r.state.answered(&request) && !r.state.needsIntervention(&request)
	})
	if at < 0 {
		return nil
	}
	request, open := &requests[at], r.state.dependency()
	if record := r.state.of(request); record != nil {
		return r.force(ctx, record, requests[at+1:])
	}
	if open == nil || len(request.Sync.Workloads) > 0 {
		return r.ensure(ctx, desiredSync{
			of: v1alpha1.SyncTypeDependency, batch: request.ID, by: requesterOf(request), detected: request.Time.Time,
			action: v1alpha1.SyncActionCluster, force: request.Sync.Force,
		})
	}
	switch open.Status.State {
	case v1alpha1.SyncStatePending:
		claimed, err := syncstatus.Claim(open, request.Actor)
		if err != nil {
			return err
		}
		if open.Status.AutoTriggered {
			claimed.Status.RequestedBy = requesterOf(request)
		}
		claimed.Status.Force = claimed.Status.Force || request.Sync.Force
		return r.put(ctx, annotated(claimed, request.ID))
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		forced := open.DeepCopy()
		// The latest requester decides about force, and Secrets are copied with the permissions of that user.
		forced.Status.Force, forced.Status.RequestedBy = request.Sync.Force, requesterOf(request)
		return r.move(ctx, forced, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: request.Actor}, request.ID)
	case v1alpha1.SyncStateRetrying:
		forced := open.DeepCopy()
		forced.Status.Force, forced.Status.RequestedBy = open.Status.Force || request.Sync.Force, requesterOf(request)
		return r.put(ctx, annotated(forced, request.ID))
	}
	return nil // It is in progress, and may have read the source before the request was made.
}

// force lets a record ignore sync windows if a later request for all workloads is forced.
func (r *reconciliation) force(ctx context.Context, record *v1alpha1.SyncStatus, behind []v1alpha1.PendingEnvironmentRequest) error {
	isForced := func(r v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&r) && r.Sync.Force && len(r.Sync.Workloads) == 0
	}
	if record.Status.Force || record.Status.State == v1alpha1.SyncStateInProgress || !slices.ContainsFunc(behind, isForced) {
		return nil
	}
	forced := record.DeepCopy()
	forced.Status.Force = true
	return r.put(ctx, forced)
}

// resolve retries conflicted records that a user has decided about.
func (r *reconciliation) resolve(ctx context.Context) error {
	for _, record := range r.state.open(v1alpha1.SyncTypeEnvironment) {
		decision := r.state.undecided(record)
		if record.Status.State != v1alpha1.SyncStateConflicted || decision == nil {
			continue
		}
		decided := record.DeepCopy()
		decided.Status.RequestedBy = requesterOf(decision)
		if err := r.move(ctx, decided, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: decision.Actor}, decision.ID); err != nil {
			return err
		}
	}
	return nil
}

// undecided returns the newest decision about conflicts that has not been applied to a record, nil if there is none.
func (s *state) undecided(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
	for i := range slices.Backward(s.environment.Status.PendingRequests) {
		if request := &s.environment.Status.PendingRequests[i]; request.Type == v1alpha1.EnvironmentRequestResolve {
			if record.Annotations[annotationRequest] == request.ID {
				return nil
			}
			return request
		}
	}
	return nil
}

// ensureDesired creates the records of the desired syncs.
func (r *reconciliation) ensureDesired(ctx context.Context) error {
	for _, w := range r.state.desiredSyncs() {
		if err := r.ensure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// overtake supersedes the records that are no longer desired, and pending ones that a newer record replaces.
func (r *reconciliation) overtake(ctx context.Context) error {
	var waiting, over []*v1alpha1.SyncStatus
	for _, record := range r.state.open(v1alpha1.SyncTypeEnvironment) {
		switch isPending := record.Status.State == v1alpha1.SyncStatePending; {
		case r.state.isTakenBack(record), isPending && (!r.state.isWanted(record) || r.state.isDone(record)):
			over = append(over, record)
		case isPending:
			waiting = append(waiting, record)
		}
	}
	slices.SortStableFunc(waiting, r.state.compareOrder)
	for i, record := range waiting {
		if slices.ContainsFunc(waiting[i+1:], func(newer *v1alpha1.SyncStatus) bool { return r.state.replaces(newer, record) }) {
			over = append(over, record)
		}
	}
	for _, record := range over {
		if err := r.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return err
		}
	}
	return nil
}

// replaces reports whether the newer of two syncs replaces the older. A sync of some workloads does not replace one of all.
func (s *state) replaces(newer, older *v1alpha1.SyncStatus) bool {
	return !s.isPartial(newer) || s.isPartial(older)
}

// isDone reports whether another sync has done what an automatic record was created for.
func (s *state) isDone(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && s.offer.isKnown() && !s.isBehind()
}

// isTakenBack reports whether a record is for a revision that the environment is no longer pinned to. Records in progress are
// completed.
func (s *state) isTakenBack(record *v1alpha1.SyncStatus) bool {
	return syncstatus.IsEdit(record.Spec.Batch) && record.Status.Revision != s.pinned() && record.Status.State != v1alpha1.SyncStateInProgress
}

// ensure creates the record of a desired sync, unless it exists. Its name follows from the desired sync.
func (r *reconciliation) ensure(ctx context.Context, w desiredSync) error {
	spec := v1alpha1.SyncStatusSpec{
		Type: w.of, Batch: w.batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: r.state.environment.Name, UID: r.state.environment.UID},
	}
	if slices.ContainsFunc(r.state.records, func(record *v1alpha1.SyncStatus) bool { return record.Spec == spec }) {
		return nil
	}
	found, name, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) {
		return r.environments.api.SyncStatuses(r.state.environment.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	if found != nil {
		r.state.take(found)
		return nil
	}
	actor := ""
	if w.by != nil {
		actor = w.by.Username
	}
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: r.state.environment.Namespace, Spec: spec, DetectedAt: w.detected,
		First: syncstatus.Step{To: v1alpha1.SyncStatePending, By: actor, At: r.state.now},
	})
	if err != nil {
		return err
	}
	record.Name, record.Status.RequestedBy = name, w.by.DeepCopy()
	record.Status.Action, record.Status.Force, record.Status.Revision = w.action, w.force, w.revision
	if w.of == v1alpha1.SyncTypeEnvironment {
		record.Status.FromRevision = r.state.environment.Status.AppliedRevision
	}
	return r.put(ctx, record)
}

// move writes the next state of a record. request is the id of the request that caused it, if any.
func (r *reconciliation) move(ctx context.Context, record *v1alpha1.SyncStatus, step syncstatus.Step, request string) error {
	step.At = r.state.now
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if request != "" {
		annotated(moved, request)
	}
	return r.put(ctx, moved)
}

// put writes a record. It returns a Conflict if the record has changed since it was read.
func (r *reconciliation) put(ctx context.Context, record *v1alpha1.SyncStatus) error {
	if err := r.environments.shared.Records.Write(ctx, record); err != nil {
		return fmt.Errorf("write SyncStatus %s: %w", record.Name, err)
	}
	written, err := r.environments.api.SyncStatuses(record.Namespace).Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read SyncStatus %s: %w", record.Name, err)
	}
	if written.Spec != record.Spec {
		return apierrors.NewConflict(v1alpha1.Resource("syncstatuses"), record.Name, fmt.Errorf("another has its name"))
	}
	r.state.take(written)
	return nil
}

// annotated records in a record which request has changed it.
func annotated(record *v1alpha1.SyncStatus, request string) *v1alpha1.SyncStatus {
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, annotationRequest, request)
	return record
}
