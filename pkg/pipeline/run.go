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

// run is a listing of everything, and the sending of what it found. A request, or a resync when its time has come, is the cause.
type run struct {
	// told is the run as the status has it, but for how far it has come.
	told  v1alpha1.PipelineRun
	sinks []*sink
}

// goOn ends what is done, and begins what is due. One list goes on at a time.
func (t *turn) goOn(ctx context.Context) {
	if t.listing.goesOn() {
		return
	}
	if t.run != nil && t.run.told.Phase == v1alpha1.PipelineRunListing {
		t.run.send()
	}
	if t.run != nil && t.run.told.Phase == v1alpha1.PipelineRunSending && t.isOver(t.run) {
		t.run.told.Phase, t.run.told.FinishedAt = v1alpha1.PipelineRunFinished, second(t.now)
	}
	if t.run == nil {
		if next := t.nextRun(); next != nil {
			t.begin(ctx, next)
			return
		}
	}
	t.poll(ctx)
}

// poll lists everything when that is due, also while a run waits for a sink: the others are to be told of what has changed.
func (t *turn) poll(ctx context.Context) {
	if t.run != nil && t.run.told.Phase != v1alpha1.PipelineRunSending {
		return
	}
	if due := t.pollDue(); !due.IsZero() && !due.After(t.now) {
		t.list(ctx, ledger.Now)
	}
}

// nextRun is the run that is to begin, nil if none is.
func (t *turn) nextRun() *run {
	if requests := t.object.Status.PendingRequests; len(requests) > 0 {
		asked := requests[0]
		return &run{told: v1alpha1.PipelineRun{ID: asked.ID, Actor: asked.Actor, Scope: asked.Scope, Full: asked.Full}}
	}
	if due := t.resyncDue(); !due.IsZero() && !due.After(t.now) {
		return &run{told: v1alpha1.PipelineRun{ID: string(uuid.NewUUID()), Scope: v1alpha1.PipelineScopeAll, Full: true}}
	}
	return nil
}

// begin begins a run, and tries again whoever has failed.
func (t *turn) begin(ctx context.Context, r *run) {
	r.told.Phase, r.told.StartedAt, r.sinks = v1alpha1.PipelineRunListing, *second(t.now), t.sinks
	for _, s := range t.sinks {
		s.ledger.Begin(r.told.ID, r.kinds()...)
		s.tryNow()
	}
	t.run = r
	urgency := ledger.Now
	if r.told.Full {
		urgency = ledger.Again
	}
	t.list(ctx, urgency, r.kinds()...)
}

// list has everything of kinds listed beside the turns, or simply everything. A type that cannot be listed is tried again by the
// observer, which says so.
func (t *turn) list(ctx context.Context, urgency ledger.Urgency, kinds ...item.Kind) {
	p := t.pipe
	if len(kinds) != 1 {
		p.polled = t.now
	}
	p.listing = start(ctx, func(ctx context.Context) {
		if err := t.observer.List(ctx, p.uid, urgency, kinds...); err != nil {
			klog.FromContext(ctx).V(2).Info("Not everything can be listed", "pipeline", p.name, "reason", err.Error())
		}
	}, func() { t.queue.Add(p.name) })
}

// kinds are those that a run is about.
func (r *run) kinds() []item.Kind {
	switch r.told.Scope {
	case v1alpha1.PipelineScopeDefinitions:
		return []item.Kind{item.CustomResourceDefinition}
	case v1alpha1.PipelineScopeInstances:
		return []item.Kind{item.Instance}
	}
	return []item.Kind{item.CustomResourceDefinition, item.Instance}
}

// send has sent what waits or was refused, now that everything has been listed: before, it would be sent twice when the list says again
// that it is to be sent.
func (r *run) send() {
	r.told.Phase = v1alpha1.PipelineRunSending
	for _, s := range r.sinks {
		s.ledger.Expedite(r.kinds()...)
		s.ledger.Mark(r.told.ID, r.kinds()...)
	}
}

// isOver says whether nothing of a run is left to send. A sink that cannot be told keeps no other run from beginning, and holds up no
// resync of the other sinks: what it is to be told stays with it. So does what is left of a resync when somebody asks for something.
func (t *turn) isOver(r *run) bool {
	asked := slices.ContainsFunc(t.object.Status.PendingRequests, func(p v1alpha1.PendingPipelineRequest) bool { return p.ID != r.told.ID })
	if asked && r.told.Actor == "" {
		return true
	}
	waits := asked || t.resyncWaits(r)
	return !slices.ContainsFunc(r.sinks, func(s *sink) bool {
		progress := s.ledger.Progress(r.told.ID)
		return slices.Contains(t.sinks, s) && progress.Done < progress.Total && !s.account.isStuck(waits)
	})
}

// resyncWaits says whether a resync is to begin after a run.
func (t *turn) resyncWaits(r *run) bool {
	interval := t.object.Spec.ResyncInterval.Duration
	return interval > 0 && !r.told.StartedAt.Add(interval).After(t.now)
}

// pollDue is when everything is to be listed again; zero when it is watched.
func (t *turn) pollDue() time.Time {
	if t.object.Spec.Mode != v1alpha1.PipelineModePoll || t.fan == nil {
		return time.Time{}
	}
	return t.polled.Add(t.object.Spec.PollInterval.Duration)
}

// resyncDue is when everything is to be sent again; zero when that is never. A resync that the end of a process has interrupted is due.
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

// progress is a run as the status has it.
func (r *run) progress() *v1alpha1.PipelineRun {
	out := r.told.DeepCopy()
	out.Sinks, out.Total, out.Done = nil, 0, 0
	for _, s := range r.sinks {
		of := s.progress(r.told.ID)
		out.Sinks = append(out.Sinks, of)
		out.Total += of.Total
		out.Done += of.Done
	}
	return out
}

// progress is how far a run has come with a sink.
func (s *sink) progress(run string) v1alpha1.PipelineRunSink {
	status, _ := s.account.current()
	now := s.ledger.Progress(run)
	return v1alpha1.PipelineRunSink{
		Name: s.spec.Name, Answer: answerOf(status),
		Total: int64(now.Total), Done: int64(now.Done), Rejected: int64(now.Rejected),
	}
}

// answerOf is what a sink has answered last, or why it has not answered.
func answerOf(status v1alpha1.PipelineSinkStatus) string {
	if status.Failures > 0 && status.LastError != nil {
		return status.LastError.Message
	}
	return status.LastAnswer
}
