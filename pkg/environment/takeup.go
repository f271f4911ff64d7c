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

// turning reconciles one environment. Each of its writes is idempotent.
type turning struct {
	*environments
	*situation
}

// takeUp creates and updates records for what users and the spec request.
func (t *turning) takeUp(ctx context.Context) error {
	for _, step := range []func(context.Context) error{t.giveUp, t.rediscover, t.refresh, t.resolve, t.ensureDesired, t.overtake} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// giveUp moves records without attempts left to ManualIntervention.
func (t *turning) giveUp(ctx context.Context) error {
	for _, record := range slices.Clone(t.records) {
		if record.Status.State != v1alpha1.SyncStateFailed {
			continue
		}
		if _, left := syncstatus.NextAttempt(record, t.policy.Retry); left {
			continue
		}
		if err := t.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateManualIntervention}, ""); err != nil {
			return err
		}
		t.events.gaveUp(t.environment, t.called(record.Name))
	}
	return nil
}

// rediscover discovers the dependencies of the workloads again if a user has requested it. It waits for a sync in progress, which
// discovers them as well. A failure is retried by the next reconcile and does not stop this one.
func (t *turning) rediscover(ctx context.Context) error {
	asked := map[string]bool{}
	for _, request := range t.environment.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestRediscover {
			asked[request.ID] = true
		}
	}
	if len(asked) == 0 || t.busy || !t.obstacle.ok() {
		return nil
	}
	if t.undone = t.detector.Rediscover(ctx, nameOf(t.environment)); t.undone == nil {
		t.rediscovered = asked
		t.sources.add(nameOf(t.environment)) // What the index names belongs to the action Cluster.
	}
	return nil
}

// refresh processes the oldest request to refresh dependencies. The open Dependency record is assigned to its user, or a new one is
// created; a request for some workloads has a record of its own. The next request is processed when that record has ended or
// requires manual intervention.
func (t *turning) refresh(ctx context.Context) error {
	requests := t.environment.Status.PendingRequests
	at := slices.IndexFunc(requests, func(r v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&r) && !t.answered(&r) && !t.needsIntervention(&r)
	})
	if at < 0 {
		return nil
	}
	request, open := &requests[at], t.dependency()
	if record := t.of(request); record != nil {
		return t.force(ctx, record, requests[at+1:])
	}
	if open == nil || len(request.Sync.Workloads) > 0 {
		return t.ensure(ctx, desiredSync{
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
		return t.put(ctx, annotated(claimed, request.ID))
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		forced := open.DeepCopy()
		// The latest requester decides about force, and Secrets are copied with the permissions of that user.
		forced.Status.Force, forced.Status.RequestedBy = request.Sync.Force, requesterOf(request)
		return t.move(ctx, forced, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: request.Actor}, request.ID)
	case v1alpha1.SyncStateRetrying:
		forced := open.DeepCopy()
		forced.Status.Force, forced.Status.RequestedBy = open.Status.Force || request.Sync.Force, requesterOf(request)
		return t.put(ctx, annotated(forced, request.ID))
	}
	return nil // It is in progress, and may have read the source before the request was made.
}

// force lets a record ignore sync windows if a later request for all workloads is forced.
func (t *turning) force(ctx context.Context, record *v1alpha1.SyncStatus, behind []v1alpha1.PendingEnvironmentRequest) error {
	isForced := func(r v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&r) && r.Sync.Force && len(r.Sync.Workloads) == 0
	}
	if record.Status.Force || record.Status.State == v1alpha1.SyncStateInProgress || !slices.ContainsFunc(behind, isForced) {
		return nil
	}
	forced := record.DeepCopy()
	forced.Status.Force = true
	return t.put(ctx, forced)
}

// resolve retries conflicted records that a user has decided about.
func (t *turning) resolve(ctx context.Context) error {
	for _, record := range t.open(v1alpha1.SyncTypeEnvironment) {
		decision := t.undecided(record)
		if record.Status.State != v1alpha1.SyncStateConflicted || decision == nil {
			continue
		}
		decided := record.DeepCopy()
		decided.Status.RequestedBy = requesterOf(decision)
		if err := t.move(ctx, decided, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: decision.Actor}, decision.ID); err != nil {
			return err
		}
	}
	return nil
}

// undecided returns the newest decision about conflicts that has not been applied to a record, nil if there is none.
func (s *situation) undecided(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
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
func (t *turning) ensureDesired(ctx context.Context) error {
	for _, w := range t.desiredSyncs() {
		if err := t.ensure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// overtake supersedes the records that are no longer desired, and pending ones that a newer record replaces.
func (t *turning) overtake(ctx context.Context) error {
	var waiting, over []*v1alpha1.SyncStatus
	for _, record := range t.open(v1alpha1.SyncTypeEnvironment) {
		switch isPending := record.Status.State == v1alpha1.SyncStatePending; {
		case t.isTakenBack(record), isPending && (!t.isWanted(record) || t.isDone(record)):
			over = append(over, record)
		case isPending:
			waiting = append(waiting, record)
		}
	}
	slices.SortStableFunc(waiting, t.compareOrder)
	for i, record := range waiting {
		if slices.ContainsFunc(waiting[i+1:], func(newer *v1alpha1.SyncStatus) bool { return t.replaces(newer, record) }) {
			over = append(over, record)
		}
	}
	for _, record := range over {
		if err := t.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return err
		}
	}
	return nil
}

// replaces reports whether the newer of two syncs replaces the older. A sync of some workloads does not replace one of all.
func (s *situation) replaces(newer, older *v1alpha1.SyncStatus) bool {
	return !s.isPartial(newer) || s.isPartial(older)
}

// isDone reports whether another sync has done what an automatic record was created for.
func (s *situation) isDone(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && s.offer.isKnown() && !s.isBehind()
}

// isTakenBack reports whether a record is for a revision that the environment is no longer pinned to. Records in progress are
// completed.
func (s *situation) isTakenBack(record *v1alpha1.SyncStatus) bool {
	return syncstatus.IsEdit(record.Spec.Batch) && record.Status.Revision != s.pinned() && record.Status.State != v1alpha1.SyncStateInProgress
}

// ensure creates the record of a desired sync, unless it exists. Its name follows from the desired sync.
func (t *turning) ensure(ctx context.Context, w desiredSync) error {
	spec := v1alpha1.SyncStatusSpec{
		Type: w.of, Batch: w.batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: t.environment.Name, UID: t.environment.UID},
	}
	if slices.ContainsFunc(t.records, func(record *v1alpha1.SyncStatus) bool { return record.Spec == spec }) {
		return nil
	}
	found, name, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) {
		return t.api.SyncStatuses(t.environment.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	if found != nil {
		t.situation.take(found)
		return nil
	}
	actor := ""
	if w.by != nil {
		actor = w.by.Username
	}
	record, err := syncstatus.New(syncstatus.Beginning{
		Namespace: t.environment.Namespace, Spec: spec, DetectedAt: w.detected,
		First: syncstatus.Step{To: v1alpha1.SyncStatePending, By: actor, At: t.now},
	})
	if err != nil {
		return err
	}
	record.Name, record.Status.RequestedBy = name, w.by.DeepCopy()
	record.Status.Action, record.Status.Force, record.Status.Revision = w.action, w.force, w.revision
	if w.of == v1alpha1.SyncTypeEnvironment {
		record.Status.FromRevision = t.environment.Status.AppliedRevision
	}
	return t.put(ctx, record)
}

// move writes the next state of a record. request is the id of the request that caused it, if any.
func (t *turning) move(ctx context.Context, record *v1alpha1.SyncStatus, step syncstatus.Step, request string) error {
	step.At = t.now
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if request != "" {
		annotated(moved, request)
	}
	return t.put(ctx, moved)
}

// put writes a record. It returns a Conflict if the record has changed since it was read.
func (t *turning) put(ctx context.Context, record *v1alpha1.SyncStatus) error {
	if err := t.shared.Records.Write(ctx, record); err != nil {
		return fmt.Errorf("write SyncStatus %s: %w", record.Name, err)
	}
	written, err := t.api.SyncStatuses(record.Namespace).Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read SyncStatus %s: %w", record.Name, err)
	}
	if written.Spec != record.Spec {
		return apierrors.NewConflict(v1alpha1.Resource("syncstatuses"), record.Name, fmt.Errorf("another has its name"))
	}
	t.situation.take(written)
	return nil
}

// annotated records in a record which request has changed it.
func annotated(record *v1alpha1.SyncStatus, request string) *v1alpha1.SyncStatus {
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, annotationRequest, request)
	return record
}
