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
	"github.com/configbutler/slipstream/pkg/controller"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// recordWriter creates and updates the records of an environment, and keeps those of the state current. Each of its writes is idempotent.
type recordWriter struct {
	state    *state
	api      typed.SyncStatusesGetter
	store    controller.Records
	events   *events
	detector Detector
	// sources counts the source changes that rediscover finds.
	sources *sourceChanges
}

// update creates and updates records for what users and the spec request.
func (w *recordWriter) update(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		w.requireIntervention, w.rediscover, w.refresh, w.resolve, w.ensureDesired, w.overtake,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// requireIntervention moves records without attempts left to ManualIntervention.
func (w *recordWriter) requireIntervention(ctx context.Context) error {
	for _, record := range slices.Clone(w.state.records) {
		if record.Status.State != v1alpha1.SyncStateFailed {
			continue
		}
		if _, left := syncstatus.NextAttempt(record, w.state.policy.Retry); left {
			continue
		}
		if err := w.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateManualIntervention}, ""); err != nil {
			return err
		}
		w.events.gaveUp(w.state.environment, w.state.records.named(record.Name))
	}
	return nil
}

// rediscover discovers the dependencies of the workloads again if a user has requested it. It waits for a sync in progress, which
// discovers them as well. A failure is retried by the next reconcile and does not stop this one.
func (w *recordWriter) rediscover(ctx context.Context) error {
	asked := map[string]bool{}
	for _, request := range w.state.environment.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestRediscover {
			asked[request.ID] = true
		}
	}
	if len(asked) == 0 || w.state.syncing || !w.state.obstacle.IsZero() {
		return nil
	}
	if w.state.requestErr = w.detector.Rediscover(ctx, nameOf(w.state.environment)); w.state.requestErr == nil {
		w.state.rediscovered = asked
		w.sources.add(nameOf(w.state.environment)) // What the index names belongs to the action Cluster.
	}
	return nil
}

// refresh processes the oldest request to refresh dependencies. The open Dependency record is assigned to its user, or a new one is
// created; a request for some workloads has a record of its own. The next request is processed when that record has ended or
// requires manual intervention.
func (w *recordWriter) refresh(ctx context.Context) error {
	requests := w.state.requests()
	at := slices.IndexFunc(requests, func(request v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&request) && !w.state.records.isAnswered(&request) && !w.state.records.needsIntervention(&request)
	})
	if at < 0 {
		return nil
	}
	request, open := &requests[at], w.state.records.dependency(requests)
	if record := w.state.records.of(request); record != nil {
		return w.force(ctx, record, requests[at+1:])
	}
	if open == nil || len(request.Sync.Workloads) > 0 {
		return w.ensure(ctx, desiredSync{
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
		return w.put(ctx, annotated(claimed, request.ID))
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		forced := open.DeepCopy()
		// The latest requester decides about force, and Secrets are copied with the permissions of that user.
		forced.Status.Force, forced.Status.RequestedBy = request.Sync.Force, requesterOf(request)
		return w.move(ctx, forced, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: request.Actor}, request.ID)
	case v1alpha1.SyncStateRetrying:
		forced := open.DeepCopy()
		forced.Status.Force, forced.Status.RequestedBy = open.Status.Force || request.Sync.Force, requesterOf(request)
		return w.put(ctx, annotated(forced, request.ID))
	}
	return nil // It is in progress, and may have read the source before the request was made.
}

// force lets a record ignore sync windows if a later request for all workloads is forced.
func (w *recordWriter) force(ctx context.Context, record *v1alpha1.SyncStatus, behind []v1alpha1.PendingEnvironmentRequest) error {
	isForced := func(r v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&r) && r.Sync.Force && len(r.Sync.Workloads) == 0
	}
	if record.Status.Force || record.Status.State == v1alpha1.SyncStateInProgress || !slices.ContainsFunc(behind, isForced) {
		return nil
	}
	forced := record.DeepCopy()
	forced.Status.Force = true
	return w.put(ctx, forced)
}

// resolve retries conflicted records that a user has decided about.
func (w *recordWriter) resolve(ctx context.Context) error {
	for _, record := range w.state.records.open(v1alpha1.SyncTypeEnvironment) {
		decision := w.state.requests().undecided(record)
		if record.Status.State != v1alpha1.SyncStateConflicted || decision == nil {
			continue
		}
		decided := record.DeepCopy()
		decided.Status.RequestedBy = requesterOf(decision)
		if err := w.move(ctx, decided, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: decision.Actor}, decision.ID); err != nil {
			return err
		}
	}
	return nil
}

// ensureDesired creates the records of the desired syncs.
func (w *recordWriter) ensureDesired(ctx context.Context) error {
	for _, desired := range w.state.triggers().desiredSyncs() {
		if err := w.ensure(ctx, desired); err != nil {
			return err
		}
	}
	return nil
}

// overtake supersedes the records that are no longer desired, and pending ones that a newer record replaces.
func (w *recordWriter) overtake(ctx context.Context) error {
	requests, triggers := w.state.requests(), w.state.triggers()
	var waiting, over []*v1alpha1.SyncStatus
	for _, record := range w.state.records.open(v1alpha1.SyncTypeEnvironment) {
		switch isPending := record.Status.State == v1alpha1.SyncStatePending; {
		case triggers.isWithdrawn(record), isPending && (!isWanted(&w.state.environment.Spec, record) || triggers.isDone(record)):
			over = append(over, record)
		case isPending:
			waiting = append(waiting, record)
		}
	}
	slices.SortStableFunc(waiting, requests.compareOrder)
	for i, record := range waiting {
		if slices.ContainsFunc(waiting[i+1:], func(newer *v1alpha1.SyncStatus) bool { return requests.replaces(newer, record) }) {
			over = append(over, record)
		}
	}
	for _, record := range over {
		if err := w.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates the record of a desired sync, unless it exists. Its name follows from the desired sync.
func (w *recordWriter) ensure(ctx context.Context, desired desiredSync) error {
	spec := v1alpha1.SyncStatusSpec{
		Type: desired.of, Batch: desired.batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: w.state.environment.Name, UID: w.state.environment.UID},
	}
	if slices.ContainsFunc(w.state.records, func(record *v1alpha1.SyncStatus) bool { return record.Spec == spec }) {
		return nil
	}
	found, name, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) {
		return w.api.SyncStatuses(w.state.environment.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	if found != nil {
		w.state.records = w.state.records.with(found)
		return nil
	}
	actor := ""
	if desired.by != nil {
		actor = desired.by.Username
	}
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: w.state.environment.Namespace, Spec: spec, DetectedAt: desired.detected,
		First: syncstatus.Step{To: v1alpha1.SyncStatePending, By: actor, At: w.state.now},
	})
	if err != nil {
		return err
	}
	record.Name, record.Status.RequestedBy = name, desired.by.DeepCopy()
	record.Status.Action, record.Status.Force, record.Status.Revision = desired.action, desired.force, desired.revision
	if desired.of == v1alpha1.SyncTypeEnvironment {
		record.Status.FromRevision = w.state.environment.Status.AppliedRevision
	}
	return w.put(ctx, record)
}

// move writes the next state of a record. request is the id of the request that caused it, if any.
func (w *recordWriter) move(ctx context.Context, record *v1alpha1.SyncStatus, step syncstatus.Step, request string) error {
	step.At = w.state.now
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if request != "" {
		annotated(moved, request)
	}
	return w.put(ctx, moved)
}

// put writes a record. It returns a Conflict if the record has changed since it was read.
func (w *recordWriter) put(ctx context.Context, record *v1alpha1.SyncStatus) error {
	stored, err := w.store.Write(ctx, record)
	if err != nil {
		return fmt.Errorf("write SyncStatus %s: %w", record.Name, err)
	}
	written, ok := stored.(*v1alpha1.SyncStatus)
	if !ok {
		return fmt.Errorf("write SyncStatus %s: got a %T", record.Name, stored)
	}
	if written.Spec != record.Spec {
		return apierrors.NewConflict(v1alpha1.Resource("syncstatuses"), record.Name, fmt.Errorf("another has its name"))
	}
	w.state.records = w.state.records.with(written)
	return nil
}

// annotated records in a record which request has changed it.
func annotated(record *v1alpha1.SyncStatus, request string) *v1alpha1.SyncStatus {
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, annotationRequest, request)
	return record
}

// close ends the records of an environment that is being deleted.
func (w *recordWriter) close(ctx context.Context) error {
	for _, record := range slices.Clone(w.state.records) {
		if syncstatus.Ended(record) {
			continue
		}
		if record.Status.State == v1alpha1.SyncStateInProgress {
			err := w.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateFailed, Failure: &syncstatus.Failure{
				Reason: v1alpha1.ReasonInterrupted, Message: "the environment is being deleted",
			}}, "")
			if err != nil {
				return err
			}
			record = w.state.records.named(record.Name)
		}
		if err := w.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded}, ""); err != nil {
			return err
		}
	}
	return nil
}
