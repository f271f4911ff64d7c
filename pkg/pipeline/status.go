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

// report writes the status if it has changed and the last write is long enough ago. A Conflict means that the pipeline was changed
// meanwhile; it is reconciled again.
func (t *turn) report(ctx context.Context) error {
	after := t.object.DeepCopy()
	condition.Set(after, t.tell(&after.Status), t.now)
	if equality.Semantic.DeepEqual(t.object.Status, after.Status) {
		t.settle(after) // An update whose response was lost may have written the end of the run.
		return nil
	}
	if early := t.written.Add(writePeriod).Sub(t.now); early > 0 {
		t.queue.AddAfter(t.name, early)
		return nil
	}
	_, err := t.api.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // The deletion will be observed.
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	t.written = t.shared.Clock.Now()
	t.events.conditions.Announce(after, t.object.Status.Conditions, after.Status.Conditions)
	t.settle(after)
	return nil
}

// settle ends a run whose end was written to the status, and enqueues the pipeline for the next run.
func (t *turn) settle(told *v1alpha1.SyncPipeline) {
	if t.run == nil || t.run.status.Phase != v1alpha1.PipelineRunFinished {
		return
	}
	t.events.finished(told, told.Status.LastRun)
	if isResync(t.run) {
		t.resynced = t.now
	}
	t.run = nil
	t.queue.Add(t.name)
}

// tell updates a status, except the conditions, whose facts it returns.
func (t *turn) tell(status *v1alpha1.SyncPipelineStatus) condition.Facts {
	seen := t.observer.State(t.uid)
	facts := condition.Facts{Held: t.held, Listed: seen.Listed, Unseen: seen.Failures, GivenUp: map[string]bool{}}
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
		of, givenUp := s.status()
		status.Sinks = append(status.Sinks, of)
		status.Pending += of.Pending
		facts.GivenUp[of.Name] = givenUp
	}
	t.tellRun(status)
	if failure := cmp.Or(t.trouble, t.blocked()); failure != nil {
		facts.Trouble = failure.Error()
	}
	status.LastError = summary.Cut(summary.Line(cmp.Or(facts.Trouble, strings.Join(seen.Failures, "; "))), longestError)
	return facts
}

// status returns the status of the sink, and whether it was given up.
func (s *sink) status() (status v1alpha1.PipelineSinkStatus, givenUp bool) {
	status, givenUp = s.state.current()
	counts := s.ledger.Counts()
	status.Pending, status.Delivered, status.Rejected = int64(counts.Pending), int64(counts.Known), int64(counts.Rejected)
	return status, givenUp
}

// tellRun sets the current or last run in a status. The request of a finished run is removed.
func (t *turn) tellRun(status *v1alpha1.SyncPipelineStatus) {
	status.CurrentRun = nil
	if t.run == nil {
		return
	}
	now := t.run.progress()
	if t.run.status.Phase != v1alpha1.PipelineRunFinished {
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

// isResync reports whether a run sends everything again.
func isResync(r *run) bool { return r.status.Full && r.status.Scope == v1alpha1.PipelineScopeAll }

// blocked returns why the store rejects writes.
func (t *turn) blocked() error {
	var blocked []error
	for _, s := range t.sinks {
		blocked = append(blocked, s.ledger.Counts().Blocked)
	}
	return cmp.Or(blocked...)
}
