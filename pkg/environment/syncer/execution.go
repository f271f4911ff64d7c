// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// work is a job that is being done.
type work struct {
	*Executor
	Job
	// entries are the job's records.
	entries []*entry

	// progress is the last that was heard of, and told is when it was last written.
	progress *v1alpha1.Progress
	told     time.Time
}

func (w *work) do(ctx context.Context) (Result, error) {
	for _, e := range w.entries {
		if err := e.begin(ctx, w.begin); err != nil {
			return Result{}, err
		}
		if !w.entries[0].begun {
			return Result{}, nil
		}
	}
	began := w.Clock.Now()
	result, failed := w.run(ctx)
	if failed != nil && ctx.Err() != nil {
		return Result{}, failed
	}
	for _, e := range w.entries {
		if err := w.end(ctx, e, result, failed); err != nil {
			return Result{}, err
		}
	}
	w.log(ctx, result, w.Clock.Since(began))
	return result, nil
}

// log writes one line about what came of the run.
func (w *work) log(ctx context.Context, result Result, took time.Duration) {
	first := w.entries[0].record
	klog.FromContext(ctx).Info("Synced an environment", "environment", klog.KObj(w.Environment), "syncStatus", first.Name,
		"state", first.Status.State, "action", w.Request.Action, "revision", result.Revision, "actor", first.Status.Actor,
		"written", len(result.Written), "failures", len(result.Failures), "preview", w.Request.Mode == ModeDryRun,
		"took", took.Round(time.Millisecond).String())
}

// begin adds to a record what is known as the run begins.
func (w *work) begin(record *v1alpha1.SyncStatus) {
	record.Status.Preview = w.Request.Mode == ModeDryRun
	if record.Spec.Type == v1alpha1.SyncTypeEnvironment {
		record.Status.FromRevision = w.Environment.Status.AppliedRevision
	}
}

func (w *work) run(ctx context.Context) (Result, error) {
	request := w.Request
	request.Environment, w.told = w.Environment, w.Clock.Now()
	if request.Mode == ModeSync {
		request.Planned = func(planned *plan.Plan) error { return w.tell(ctx, planned) }
		request.Progress = func(done, total int) { w.proceed(ctx, done, total) }
	}
	return w.Runner.Run(ctx, request)
}

// tell has the records say what is about to be written, so that it is known after a death.
func (w *work) tell(ctx context.Context, planned *plan.Plan) error {
	for _, e := range w.entries {
		if err := e.expect(ctx, planned.Summaries()); err != nil {
			return err
		}
	}
	return nil
}

// proceed has the records say how far the run has come, at most once a second. It is no loss if they do not.
func (w *work) proceed(ctx context.Context, done, total int) {
	w.progress = &v1alpha1.Progress{Done: int32(done), Total: int32(total)}
	if w.Clock.Since(w.told) < time.Second {
		return
	}
	w.told = w.Clock.Now()
	for _, e := range w.entries {
		_ = e.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
			record.Status.Progress = w.progress
			return record, nil
		})
	}
}

// end writes what came of the run.
func (w *work) end(ctx context.Context, e *entry, result Result, failed error) error {
	if !e.begun {
		return nil
	}
	v := w.verdict(e.record.Spec.Type, result, failed)
	return e.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		ended, err := syncstatus.Move(record, syncstatus.Step{To: v.to, At: w.Clock.Now(), Failure: v.failure})
		if err != nil {
			return nil, err
		}
		ended.Status.Progress, ended.Status.Failures, ended.Status.Warnings = w.progress, v.failures, w.warnings(result)
		e.conclude(ended, w.Request.Mode, result)
		if ended.Spec.Type == v1alpha1.SyncTypeEnvironment && result.Revision > 0 {
			ended.Status.Revision = result.Revision
			w.attribute(ctx, ended)
		}
		return ended, nil
	})
}
