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

// goOn finishes what is done, and starts what is due. Only one list runs at a time.
func (t *turn) goOn(ctx context.Context) {
	if t.listing.isRunning() {
		return
	}
	if t.run != nil && t.run.status.Phase == v1alpha1.PipelineRunListing {
		t.run.send()
	}
	if t.run != nil && t.run.status.Phase == v1alpha1.PipelineRunSending && t.isOver(t.run) {
		t.run.status.Phase, t.run.status.FinishedAt = v1alpha1.PipelineRunFinished, second(t.now)
	}
	if t.run == nil {
		if next := t.nextRun(); next != nil {
			t.begin(ctx, next)
			return
		}
	}
	t.poll(ctx)
}

// poll lists everything when the poll interval has passed, also while a run waits for a sink: the other sinks must receive changes.
func (t *turn) poll(ctx context.Context) {
	if t.run != nil && t.run.status.Phase != v1alpha1.PipelineRunSending {
		return
	}
	if due := t.pollDue(); !due.IsZero() && !due.After(t.now) {
		t.list(ctx, ledger.Immediate)
	}
}

// nextRun returns the run that is due, or nil.
func (t *turn) nextRun() *run {
	if requests := t.object.Status.PendingRequests; len(requests) > 0 {
		asked := requests[0]
		return &run{status: v1alpha1.PipelineRun{ID: asked.ID, Actor: asked.Actor, Scope: asked.Scope, Full: asked.Full}}
	}
	if due := t.resyncDue(); !due.IsZero() && !due.After(t.now) {
		return &run{status: v1alpha1.PipelineRun{ID: string(uuid.NewUUID()), Scope: v1alpha1.PipelineScopeAll, Full: true}}
	}
	return nil
}

// begin starts a run, and retries failed sinks.
func (t *turn) begin(ctx context.Context, r *run) {
	r.status.Phase, r.status.StartedAt, r.sinks = v1alpha1.PipelineRunListing, *second(t.now), t.sinks
	for _, s := range t.sinks {
		s.ledger.StartRun(r.status.ID, r.kinds()...)
		s.tryNow()
	}
	t.run = r
	urgency := ledger.Immediate
	if r.status.Full {
		urgency = ledger.Resend
	}
	t.list(ctx, urgency, r.kinds()...)
}

// list lists objects of kinds in the background, or of all kinds. The observer retries failed types and reports them in its state.
func (t *turn) list(ctx context.Context, urgency ledger.Urgency, kinds ...item.Kind) {
	p := t.pipe
	if len(kinds) != 1 {
		p.polled = t.now
	}
	p.listing = start(ctx, func(ctx context.Context) {
		if err := t.observer.List(ctx, p.uid, urgency, kinds...); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to list all types", "pipeline", p.name, "reason", err.Error())
		}
	}, func() { t.queue.Add(p.name) })
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

// send makes pending and rejected changes due, once everything was listed: before, the list could cause them to be sent twice.
func (r *run) send() {
	r.status.Phase = v1alpha1.PipelineRunSending
	for _, s := range r.sinks {
		s.ledger.Expedite(r.kinds()...)
		s.ledger.MarkRun(r.status.ID, r.kinds()...)
	}
}

// isOver reports whether nothing of a run is left to send. A sink that is stuck does not delay other runs, nor resyncs of the other sinks:
// its changes stay pending. The rest of a resync does not delay a request.
func (t *turn) isOver(r *run) bool {
	asked := slices.ContainsFunc(t.object.Status.PendingRequests, func(p v1alpha1.PendingPipelineRequest) bool { return p.ID != r.status.ID })
	if asked && r.status.Actor == "" {
		return true
	}
	waits := asked || t.resyncWaits(r)
	return !slices.ContainsFunc(r.sinks, func(s *sink) bool {
		progress := s.ledger.Progress(r.status.ID)
		return slices.Contains(t.sinks, s) && progress.Done < progress.Total && !s.state.isStuck(waits)
	})
}

// resyncWaits reports whether a resync is due after a run.
func (t *turn) resyncWaits(r *run) bool {
	interval := t.object.Spec.ResyncInterval.Duration
	return interval > 0 && !r.status.StartedAt.Add(interval).After(t.now)
}

// pollDue returns when the next poll is due, zero if the pipeline uses watches.
func (t *turn) pollDue() time.Time {
	if t.object.Spec.Mode != v1alpha1.PipelineModePoll || t.fan == nil {
		return time.Time{}
	}
	return t.polled.Add(t.object.Spec.PollInterval.Duration)
}

// resyncDue returns when the next resync is due, zero if resyncs are disabled.
func (t *turn) resyncDue() time.Time {
	interval := t.object.Spec.ResyncInterval.Duration
	if interval == 0 {
		return time.Time{}
	}
	if current := t.object.Status.CurrentRun; current != nil && current.Actor == "" && t.run == nil {
		return current.StartedAt.Time
	}
	last := ptr.Deref(t.object.Status.LastResyncTime, t.object.CreationTimestamp).Time
	if t.resynced.After(last) {
		last = t.resynced
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
