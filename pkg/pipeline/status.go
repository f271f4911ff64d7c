// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/condition"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// report writes the status if something in it is new and it has not been written a moment ago. A Conflict says that somebody has changed
// the pipeline meanwhile: then the turn is made again.
func (t *turn) report(ctx context.Context) error {
	after := t.object.DeepCopy()
	condition.Set(after, t.tell(&after.Status), t.now)
	if equality.Semantic.DeepEqual(t.object.Status, after.Status) {
		t.settle(after) // Its end may have been written by a call whose answer was lost.
		return nil
	}
	if early := t.written.Add(writePeriod).Sub(t.now); early > 0 {
		t.queue.AddAfter(t.name, early)
		return nil
	}
	_, err := t.api.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // Its deletion is about to be heard of.
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	t.written = t.config.Clock.Now()
	t.events.conditions.Announce(after, t.object.Status.Conditions, after.Status.Conditions)
	t.settle(after)
	return nil
}

// settle lets go of a run whose end is in the status now, and has the next one begin.
func (t *turn) settle(told *v1alpha1.SyncPipeline) {
	if t.run == nil || t.run.told.Phase != v1alpha1.PipelineRunFinished {
		return
	}
	t.events.finished(told, told.Status.LastRun)
	if isResync(t.run) {
		t.resynced = t.now
	}
	t.run = nil
	t.queue.Add(t.name)
}

// tell has a status say how the pipeline is. It returns what conditions follow from beside that.
func (t *turn) tell(status *v1alpha1.SyncPipelineStatus) condition.Facts {
	seen := t.observer.State(t.uid)
	facts := condition.Facts{Held: t.held, Listed: seen.Listed, Unseen: seen.Failures, Resting: map[string]bool{}}
	status.ObservedGeneration = t.object.Generation
	status.WatchedTypes = int32(seen.WatchedTypes)
	if t.fan != nil && t.selection.Definitions != nil {
		status.WatchedTypes++
	}
	if seen.Listed {
		status.Objects = seen.Objects
	}
	status.Sinks, status.Pending = nil, 0
	for _, s := range t.sinks {
		of, resting := s.status()
		status.Sinks = append(status.Sinks, of)
		status.Pending += of.Pending
		facts.Resting[of.Name] = resting
	}
	t.tellRun(status)
	if failure := cmp.Or(t.trouble, t.blocked()); failure != nil {
		facts.Trouble = failure.Error()
	}
	status.LastError = summary.Cut(summary.Line(cmp.Or(facts.Trouble, strings.Join(seen.Failures, "; "))), longestError)
	return facts
}

// status is how a sink is.
func (s *sink) status() (status v1alpha1.PipelineSinkStatus, resting bool) {
	status, resting = s.account.current()
	counts := s.ledger.Counts()
	status.Pending, status.Delivered, status.Rejected = int64(counts.Pending), int64(counts.Known), int64(counts.Rejected)
	return status, resting
}

// tellRun has a status tell of the run that goes on, or has just ended. The request of one that has ended is over.
func (t *turn) tellRun(status *v1alpha1.SyncPipelineStatus) {
	status.CurrentRun = nil
	if t.run == nil {
		return
	}
	now := t.run.progress()
	if t.run.told.Phase != v1alpha1.PipelineRunFinished {
		status.CurrentRun = now
		return
	}
	status.LastRun = now
	if isResync(t.run) {
		status.LastResyncTime = now.StartedAt.DeepCopy()
	}
	var waiting []v1alpha1.PendingPipelineRequest
	for _, request := range status.PendingRequests {
		if request.ID != now.ID {
			waiting = append(waiting, request)
		}
	}
	status.PendingRequests = waiting
}

// isResync says whether a run sends everything again.
func isResync(r *run) bool { return r.told.Full && r.told.Scope == v1alpha1.PipelineScopeAll }

// blocked is why the store takes nothing.
func (t *turn) blocked() error {
	var blocked []error
	for _, s := range t.sinks {
		blocked = append(blocked, s.ledger.Counts().Blocked)
	}
	return cmp.Or(blocked...)
}
