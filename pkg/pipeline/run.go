// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// run is a list of everything and the delivery of its changes, for a request or a periodic resync.
type run struct {
	// status is the status of the run without its progress.
	status v1alpha1.PipelineRun
	sinks  []*sink
}

// advance completes what is finished, and starts what is due. Only one list runs at a time.
func (r *reconciliation) advance(ctx context.Context) {
	p := r.pipeline
	if p.listing.isRunning() {
		return
	}
	if p.run != nil && p.run.status.Phase == v1alpha1.PipelineRunListing {
		p.run.send()
	}
	if p.run != nil && p.run.status.Phase == v1alpha1.PipelineRunSending && r.isOver(p.run) {
		p.run.status.Phase, p.run.status.FinishedAt = v1alpha1.PipelineRunFinished, second(r.now)
	}
	if p.run == nil {
		if next := r.nextRun(); next != nil {
			r.begin(ctx, next)
			return
		}
	}
	r.poll(ctx)
}

// poll lists everything when the poll interval has passed, also while a run waits for a sink: the other sinks must receive changes.
func (r *reconciliation) poll(ctx context.Context) {
	if run := r.pipeline.run; run != nil && run.status.Phase != v1alpha1.PipelineRunSending {
		return
	}
	if due := r.pollDue(); !due.IsZero() && !due.After(r.now) {
		r.list(ctx, ledger.Immediate)
	}
}

// nextRun returns the run that is due, or nil.
func (r *reconciliation) nextRun() *run {
	if requests := r.object.Status.PendingRequests; len(requests) > 0 {
		first := requests[0]
		return &run{status: v1alpha1.PipelineRun{ID: first.ID, Actor: first.Actor, Scope: first.Scope, Full: first.Full}}
	}
	if due := r.resyncDue(); !due.IsZero() && !due.After(r.now) {
		return &run{status: v1alpha1.PipelineRun{ID: string(uuid.NewUUID()), Scope: v1alpha1.PipelineScopeAll, Full: true}}
	}
	return nil
}

// begin starts a run, and retries failed sinks.
func (r *reconciliation) begin(ctx context.Context, next *run) {
	sinks := r.pipeline.sinks
	next.status.Phase, next.status.StartedAt, next.sinks = v1alpha1.PipelineRunListing, *second(r.now), sinks
	for _, s := range sinks {
		s.ledger.StartRun(next.status.ID, next.kinds()...)
		s.tryNow()
	}
	r.pipeline.run = next
	urgency := ledger.Immediate
	if next.status.Full {
		urgency = ledger.Resend
	}
	r.list(ctx, urgency, next.kinds()...)
}

// list lists objects of kinds in the background, or of all kinds. The observer retries failed types and reports them in its state.
func (r *reconciliation) list(ctx context.Context, urgency ledger.Urgency, kinds ...item.Kind) {
	c, p := r.pipelines, r.pipeline
	if len(kinds) != 1 {
		p.polled = r.now
	}
	p.listing = start(ctx, func(ctx context.Context) {
		if err := c.observer.List(ctx, p.uid, urgency, kinds...); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to list all types", "pipeline", p.name, "reason", err.Error())
		}
	}, func() { c.queue.Add(p.name) })
}

// kinds returns the kinds in the scope of the run.
func (r *run) kinds() []item.Kind {
	switch r.status.Scope {
	case v1alpha1.PipelineScopeDefinitions:
		return []item.Kind{item.CustomResourceDefinition}
	case v1alpha1.PipelineScopeInstances:
		return []item.Kind{item.Instance}
	}
	return []item.Kind{item.CustomResourceDefinition, item.Instance}
}

// send makes changes that are pending, and those that were rejected before the run, due once everything was listed: before, the list could
// cause them to be sent twice.
func (r *run) send() {
	r.status.Phase = v1alpha1.PipelineRunSending
	for _, s := range r.sinks {
		s.ledger.MarkRun(r.status.ID, r.kinds()...)
	}
}

// isOver reports whether nothing of a run is left to send. A sink that is stuck does not delay other runs, nor resyncs of the other sinks:
// its changes stay pending. The rest of a resync does not delay a request.
func (r *reconciliation) isOver(of *run) bool {
	isOther := func(p v1alpha1.PendingPipelineRequest) bool { return p.ID != of.status.ID }
	requested := slices.ContainsFunc(r.object.Status.PendingRequests, isOther)
	if requested && of.status.Actor == "" {
		return true
	}
	othersWait := requested || r.resyncWaits(of)
	return !slices.ContainsFunc(of.sinks, func(s *sink) bool {
		progress := s.ledger.Progress(of.status.ID)
		return slices.Contains(r.pipeline.sinks, s) && progress.Done < progress.Total && !s.state.isStuck(othersWait)
	})
}

// resyncWaits reports whether a resync is due after a run.
func (r *reconciliation) resyncWaits(of *run) bool {
	interval := r.object.Spec.ResyncInterval.Duration
	return interval > 0 && !of.status.StartedAt.Add(interval).After(r.now)
}

// pollDue returns when the next poll is due, zero if the pipeline uses watches.
func (r *reconciliation) pollDue() time.Time {
	if r.object.Spec.Mode != v1alpha1.PipelineModePoll || r.pipeline.fan == nil {
		return time.Time{}
	}
	return r.pipeline.polled.Add(r.object.Spec.PollInterval.Duration)
}

// resyncDue returns when the next resync is due, zero if resyncs are disabled. A resync that the previous process has not finished is
// repeated.
func (r *reconciliation) resyncDue() time.Time {
	interval := r.object.Spec.ResyncInterval.Duration
	if interval == 0 {
		return time.Time{}
	}
	if current := r.object.Status.CurrentRun; current != nil && current.Actor == "" && r.pipeline.run == nil {
		return current.StartedAt.Time
	}
	last := ptr.Deref(r.object.Status.LastResyncTime, r.object.CreationTimestamp).Time
	if r.pipeline.resynced.After(last) {
		last = r.pipeline.resynced
	}
	return last.Add(interval)
}

// progress returns the status of a run with its progress.
func (r *run) progress() *v1alpha1.PipelineRun {
	out := r.status.DeepCopy()
	out.Sinks, out.Total, out.Done = nil, 0, 0
	for _, s := range r.sinks {
		of := s.progress(r.status.ID)
		out.Sinks = append(out.Sinks, of)
		out.Total += of.Total
		out.Done += of.Done
	}
	return out
}

// progress returns the progress of a run with a sink.
func (s *sink) progress(run string) v1alpha1.PipelineRunSink {
	status, _ := s.state.current()
	now := s.ledger.Progress(run)
	return v1alpha1.PipelineRunSink{
		Name: s.spec.Name, Answer: answerOf(status),
		Total: int64(now.Total), Done: int64(now.Done), Rejected: int64(now.Rejected),
	}
}

// answerOf returns the last response of a sink, or why it failed.
func answerOf(status v1alpha1.PipelineSinkStatus) string {
	if status.Failures > 0 && status.LastError != nil {
		return status.LastError.Message
	}
	return status.LastAnswer
}
