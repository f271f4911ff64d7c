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

// writeStatus writes the status if it has changed and the last write is long enough ago. A Conflict means that the pipeline was changed
// meanwhile; it is reconciled again.
func (r *reconciliation) writeStatus(ctx context.Context) error {
	c, p := r.pipelines, r.pipeline
	after := r.object.DeepCopy()
	condition.Set(after, r.updateStatus(&after.Status), r.now)
	if equality.Semantic.DeepEqual(r.object.Status, after.Status) {
		r.finishRun(after) // An update whose response was lost may have written the end of the run.
		return nil
	}
	if early := p.written.Add(writePeriod).Sub(r.now); early > 0 {
		c.queue.AddAfter(p.name, early)
		return nil
	}
	_, err := c.api.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // The deletion will be observed.
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	p.written = c.shared.Clock.Now()
	c.events.conditions.Announce(after, r.object.Status.Conditions, after.Status.Conditions)
	r.finishRun(after)
	return nil
}

// finishRun drops a run whose end was written to the status, and enqueues the pipeline for the next run.
func (r *reconciliation) finishRun(written *v1alpha1.SyncPipeline) {
	p := r.pipeline
	if p.run == nil || p.run.status.Phase != v1alpha1.PipelineRunFinished {
		return
	}
	r.pipelines.events.finished(written, written.Status.LastRun)
	if isResync(p.run) {
		p.resynced = r.now
	}
	p.run = nil
	r.pipelines.queue.Add(p.name)
}

// updateStatus updates a status, except the conditions, and returns the facts for these.
func (r *reconciliation) updateStatus(status *v1alpha1.SyncPipelineStatus) condition.Facts {
	p := r.pipeline
	seen := r.pipelines.observer.State(p.uid)
	facts := condition.Facts{Held: r.held, Listed: seen.Listed, WatchFailures: seen.Failures, GivenUp: map[string]bool{}}
	status.ObservedGeneration = r.object.Generation
	status.WatchedTypes = int32(seen.WatchedTypes)
	if p.fan != nil && p.selection.Definitions != nil {
		status.WatchedTypes++
	}
	if seen.Listed {
		status.Objects = seen.Objects
	}
	status.Sinks, status.Pending = nil, 0
	for _, s := range p.sinks {
		of, givenUp := s.status()
		status.Sinks = append(status.Sinks, of)
		status.Pending += of.Pending
		facts.GivenUp[of.Name] = givenUp
	}
	p.updateRunStatus(status)
	if failure := cmp.Or(p.lastError, p.storeError()); failure != nil {
		facts.Failure = failure.Error()
	}
	status.LastError = summary.Cut(summary.Line(cmp.Or(facts.Failure, strings.Join(seen.Failures, "; "))), longestError)
	return facts
}

// status returns the status of the sink, and whether it was given up.
func (s *sink) status() (status v1alpha1.PipelineSinkStatus, givenUp bool) {
	status, givenUp = s.state.current()
	counts := s.ledger.Counts()
	status.Pending, status.Delivered, status.Rejected = int64(counts.Pending), int64(counts.Known), int64(counts.Rejected)
	return status, givenUp
}

// updateRunStatus sets the current or last run in a status. The request of a finished run is removed.
func (p *pipeline) updateRunStatus(status *v1alpha1.SyncPipelineStatus) {
	status.CurrentRun = nil
	if p.run == nil {
		return
	}
	now := p.run.progress()
	if p.run.status.Phase != v1alpha1.PipelineRunFinished {
		status.CurrentRun = now
		return
	}
	status.LastRun = now
	if isResync(p.run) {
		status.LastResyncTime = now.StartedAt.DeepCopy()
	}
	var pending []v1alpha1.PendingPipelineRequest
	for _, request := range status.PendingRequests {
		if request.ID != now.ID {
			pending = append(pending, request)
		}
	}
	status.PendingRequests = pending
}

// isResync reports whether a run sends everything again.
func isResync(r *run) bool { return r.status.Full && r.status.Scope == v1alpha1.PipelineScopeAll }

// storeError returns why the store rejects writes of a ledger; nil if it does not.
func (p *pipeline) storeError() error {
	var blocked []error
	for _, s := range p.sinks {
		blocked = append(blocked, s.ledger.Counts().Blocked)
	}
	return cmp.Or(blocked...)
}
