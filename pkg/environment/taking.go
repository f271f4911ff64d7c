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

// turning is a turn that goes on. Each of its writes can be repeated.
type turning struct {
	*environments
	*situation
}

// takeUp has records say what people and the spec ask for.
func (t *turning) takeUp(ctx context.Context) error {
	for _, step := range []func(context.Context) error{t.giveUp, t.rediscover, t.refresh, t.resolve, t.wish, t.overtake} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// giveUp has someone look at what has failed too often.
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

// rediscover has found anew what workloads refer to, as has been asked for. While a run goes on, that finds it, too, and is waited for.
// What cannot be found is looked for in the next turn, and keeps nothing else from being done in this one.
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

// refresh takes up the oldest request to refresh what workloads refer to: the open record of that becomes its user's, or else a
// new one begins; a part of it has one of its own. The next request is taken up when that has come to its end, or needs somebody.
func (t *turning) refresh(ctx context.Context) error {
	requests := t.environment.Status.PendingRequests
	at := slices.IndexFunc(requests, func(r v1alpha1.PendingEnvironmentRequest) bool {
		return isRefresh(&r) && !t.answered(&r) && !t.needsSomebody(&r)
	})
	if at < 0 {
		return nil
	}
	request, open := &requests[at], t.dependency()
	if record := t.of(request); record != nil {
		return t.force(ctx, record, requests[at+1:])
	}
	if open == nil || len(request.Sync.Workloads) > 0 {
		return t.ensure(ctx, wish{
			of: v1alpha1.SyncTypeDependency, batch: request.ID, by: askedBy(request), detected: request.Time.Time,
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
			claimed.Status.RequestedBy = askedBy(request)
		}
		claimed.Status.Force = claimed.Status.Force || request.Sync.Force
		return t.put(ctx, annotated(claimed, request.ID))
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		forced := open.DeepCopy()
		// Who asks now says what is taken over, and not who asked before; it is their Secrets that are copied.
		forced.Status.Force, forced.Status.RequestedBy = request.Sync.Force, askedBy(request)
		return t.move(ctx, forced, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: request.Actor}, request.ID)
	case v1alpha1.SyncStateRetrying:
		forced := open.DeepCopy()
		forced.Status.Force, forced.Status.RequestedBy = open.Status.Force || request.Sync.Force, askedBy(request)
		return t.put(ctx, annotated(forced, request.ID))
	}
	return nil // It is being done, and may have read the source before the request was made.
}

// force has a record wait for windows no longer when one of the requests behind it does not, which is about everything.
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

// resolve tries again what somebody has decided about.
func (t *turning) resolve(ctx context.Context) error {
	for _, record := range t.open(v1alpha1.SyncTypeEnvironment) {
		decision := t.undecided(record)
		if record.Status.State != v1alpha1.SyncStateConflicted || decision == nil {
			continue
		}
		decided := record.DeepCopy()
		decided.Status.RequestedBy = askedBy(decision)
		if err := t.move(ctx, decided, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: decision.Actor}, decision.ID); err != nil {
			return err
		}
	}
	return nil
}

// undecided is the newest decision about conflicts that a record has not been tried again with, nil if there is none.
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

// wish has each wish begin a record.
func (t *turning) wish(ctx context.Context) error {
	for _, w := range t.wishes() {
		if err := t.ensure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// overtake lets go of what nobody wants any more, and of the records that wait those whose place a newer one takes.
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

// replaces says whether the newer of two runs takes the place of the other. One of some workloads leaves alone what the others need.
func (s *situation) replaces(newer, older *v1alpha1.SyncStatus) bool {
	return !s.isPartial(newer) || s.isPartial(older)
}

// isDone says whether another run has done what a record was to begin by itself.
func (s *situation) isDone(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && s.offer.isKnown() && !s.isBehind()
}

// isTakenBack says whether a record is about a revision that the environment was pinned to and is not any more. What has begun is
// brought to its end.
func (s *situation) isTakenBack(record *v1alpha1.SyncStatus) bool {
	return syncstatus.IsEdit(record.Spec.Batch) && record.Status.Revision != s.pinned() && record.Status.State != v1alpha1.SyncStateInProgress
}

// ensure has a wish have its record, which follows from the wish.
func (t *turning) ensure(ctx context.Context, w wish) error {
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

// move takes a record a step further; by is the request that it is for, empty if it is for none.
func (t *turning) move(ctx context.Context, record *v1alpha1.SyncStatus, step syncstatus.Step, by string) error {
	step.At = t.now
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if by != "" {
		annotated(moved, by)
	}
	return t.put(ctx, moved)
}

// put writes a record. A Conflict says that somebody has changed it since it was read.
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

// annotated says in a record which request has moved it.
func annotated(record *v1alpha1.SyncStatus, request string) *v1alpha1.SyncStatus {
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, annotationRequest, request)
	return record
}
