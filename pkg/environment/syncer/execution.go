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

// execution is one execution of a job.
type execution struct {
	executor *Executor
	job      Job
	records  []*jobRecord

	// progress is the latest progress, and progressWritten is when it was last written.
	progress        *v1alpha1.Progress
	progressWritten time.Time
}

func (x *execution) execute(ctx context.Context) (Result, error) {
	for _, r := range x.records {
		if err := r.begin(ctx, x.begin); err != nil {
			return Result{}, err
		}
		if !x.records[0].begun {
			return Result{}, nil
		}
	}
	began := x.executor.Clock.Now()
	result, failed := x.run(ctx)
	if failed != nil && ctx.Err() != nil {
		return Result{}, failed
	}
	for _, r := range x.records {
		if err := x.end(ctx, r, result, failed); err != nil {
			return Result{}, err
		}
	}
	x.log(ctx, result, x.executor.Clock.Since(began))
	return result, nil
}

// log logs the outcome of the run.
func (x *execution) log(ctx context.Context, result Result, took time.Duration) {
	first := x.records[0].record
	klog.FromContext(ctx).Info("Synced an environment", "environment", klog.KObj(x.job.Environment), "syncStatus", first.Name,
		"state", first.Status.State, "action", x.job.Request.Action, "revision", result.Revision, "actor", first.Status.Actor,
		"written", len(result.Written), "failures", len(result.Failures), "preview", x.job.Request.Mode == ModeDryRun,
		"took", took.Round(time.Millisecond).String())
}

// begin sets the fields of a record that are known when the run starts.
func (x *execution) begin(record *v1alpha1.SyncStatus) {
	record.Status.Preview = x.job.Request.Mode == ModeDryRun
	if record.Spec.Type == v1alpha1.SyncTypeEnvironment {
		record.Status.FromRevision = x.job.Environment.Status.AppliedRevision
	}
}

func (x *execution) run(ctx context.Context) (Result, error) {
	request := x.job.Request
	request.Environment, x.progressWritten = x.job.Environment, x.executor.Clock.Now()
	if request.Mode == ModeSync {
		request.Planned = func(planned *plan.Plan) error { return x.recordPlan(ctx, planned) }
		request.Progress = func(done, total int) { x.recordProgress(ctx, done, total) }
	}
	return x.executor.Runner.Run(ctx, request)
}

// recordPlan records what is about to be written, so that it is known after a crash.
func (x *execution) recordPlan(ctx context.Context, planned *plan.Plan) error {
	for _, r := range x.records {
		if err := r.expect(ctx, planned.Summaries()); err != nil {
			return err
		}
	}
	return nil
}

// recordProgress records the progress of the run at most once a second, on a best effort basis.
func (x *execution) recordProgress(ctx context.Context, done, total int) {
	x.progress = &v1alpha1.Progress{Done: int32(done), Total: int32(total)}
	if x.executor.Clock.Since(x.progressWritten) < time.Second {
		return
	}
	x.progressWritten = x.executor.Clock.Now()
	for _, r := range x.records {
		_ = r.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
			record.Status.Progress = x.progress
			return record, nil
		})
	}
}

// end records the outcome of the run.
func (x *execution) end(ctx context.Context, r *jobRecord, result Result, failed error) error {
	if !r.begun {
		return nil
	}
	o := x.outcome(r.record.Spec.Type, result, failed)
	return r.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		ended, err := syncstatus.Move(record, syncstatus.Step{To: o.state, At: x.executor.Clock.Now(), Failure: o.failure})
		if err != nil {
			return nil, err
		}
		ended.Status.Progress, ended.Status.Failures, ended.Status.Warnings = x.progress, o.failures, x.warnings(result)
		r.conclude(ended, x.job.Request.Mode, result)
		if ended.Spec.Type == v1alpha1.SyncTypeEnvironment && result.Revision > 0 {
			ended.Status.Revision = result.Revision
			x.attribute(ctx, ended)
		}
		return ended, nil
	})
}
