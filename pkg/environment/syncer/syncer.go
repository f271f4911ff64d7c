// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// maxPlans is how many times a run plans before it gives up because other clients keep changing its objects.
const maxPlans = 5

// ErrContended is returned if other clients kept changing the objects of a run.
var ErrContended = errors.New("other clients keep changing the objects of this sync")

// Syncer syncs environments. It is safe for concurrent use by one run of each environment.
type Syncer struct {
	StateReader *StateReader
	Applier     *apply.Applier
	Copies      *copies.Copies
	// Records is required in ModeSync.
	Records Records
	// Dependencies reads and deletes EnvironmentDependencies.
	Dependencies typed.EnvironmentDependenciesGetter
	Index        *index.Index
}

// WithRecords returns a Syncer that shares everything with s and writes to records.
func (s *Syncer) WithRecords(records Records) *Syncer {
	with := *s
	with.Records = records
	return &with
}

// Records writes the records that clients of the API are not allowed to write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) (runtime.Object, error)
}

// Mode is the extent of a run.
type Mode int

const (
	// ModeSync plans, and applies the plan.
	ModeSync Mode = iota
	// ModeDryRun plans, and dry-runs the plan in the cluster. Nothing is written.
	ModeDryRun
	// ModePlan only plans.
	ModePlan
)

// Request says what is to be synced.
type Request struct {
	Environment *v1alpha1.Environment
	// Catalog is the UID of the catalog from which the sync takes. In ModeSync, nothing is taken from another one of the same name.
	Catalog types.UID
	// Revision is the catalog revision to sync; 0: the current one. If the environment had the revision before, what was applied
	// then is applied again.
	Revision int64

	Action     v1alpha1.SyncAction
	Only       []v1alpha1.WorkloadReference
	Force      bool
	Resolution v1alpha1.ConflictResolutionSpec
	// Requester is the user who must be allowed to read what the catalog's editor does not share, and to write what the plan writes.
	// It is required in ModeSync.
	Requester *access.Holder
	// Related returns the other environments with the same target from a cache. What it returns is not modified. If it is nil, the
	// environments of the namespace are listed, at a cost that grows with their number.
	Related func(*v1alpha1.Environment) []*v1alpha1.Environment

	Mode Mode
	// Since is a moment after the changes that the plan must contain. What other plans have read of the source after it is used again. If
	// it is zero, it is the moment of the run, so that everything is read by this run or at the same time.
	Since Moment
	// Planned, if set, is called with each plan before it is applied. An error ends the run.
	Planned func(*plan.Plan) error
	// Progress, if set, is called after each applied step, sequentially.
	Progress apply.Progress
}

// Result is the outcome of a run.
type Result struct {
	// Revision is the catalog revision of the plan.
	Revision int64
	// Plan is the last plan.
	Plan *plan.Plan
	// Failures are the objects that were not synced: missing in the source, not ours, being deleted, or refused by the cluster. Nothing
	// was written if the dry run refused an object, or if the Requester is not allowed to write one.
	Failures []v1alpha1.ObjectFailure
	// Unchecked is set if nothing could be dry-run because the target namespace does not exist.
	Unchecked bool
	// Written are the written objects, in order.
	Written []v1alpha1.ResourceSummary
	// Complete is set if the whole plan was applied and recorded. There can still be Failures and Plan.Conflicts.
	Complete bool
}

// Run syncs an environment as far as the mode says. After an error it can be run again; the result then contains what was done before
// the error.
func (s *Syncer) Run(ctx context.Context, request Request) (Result, error) {
	r := &syncRun{syncer: s, request: request}
	if err := r.run(ctx); err != nil {
		return r.result, fmt.Errorf("sync environment %s/%s: %w", request.Environment.Namespace, request.Environment.Name, err)
	}
	return r.result, nil
}

// Moment returns a moment after all reads that have begun, and before all others. See Request.Since.
func (s *Syncer) Moment() Moment { return s.StateReader.shared.now() }

// errNoRequester is returned for ModeSync without a Requester.
var errNoRequester = errors.New("the requester is missing")

// syncRun is one run of a Syncer.
type syncRun struct {
	syncer  *Syncer
	request Request
	result  Result
}

func (r *syncRun) run(ctx context.Context) error {
	if r.request.Mode == ModeSync && r.request.Requester == nil {
		return errNoRequester
	}
	var changed []apply.Conflict
	for range maxPlans {
		var err error
		if changed, err = r.once(ctx); err != nil || len(changed) == 0 {
			return err
		}
	}
	sentences := make([]string, len(changed))
	for i, conflict := range changed {
		sentences[i] = conflict.Message
	}
	return fmt.Errorf("%w: %s", ErrContended, strings.Join(sentences, ", "))
}

// once plans and applies the plan once. It returns the objects that were changed since they were read.
func (r *syncRun) once(ctx context.Context) ([]apply.Conflict, error) {
	state, err := r.syncer.StateReader.Read(ctx, r.request)
	if err != nil {
		return nil, err
	}
	planned, err := r.syncer.StateReader.Planner.Plan(ctx, state)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	r.result.Plan, r.result.Revision, r.result.Failures = planned, state.Revision, planned.Failures()
	steps := stepsOf(planned)
	switch r.request.Mode {
	case ModePlan:
		return nil, nil
	case ModeDryRun:
		report, err := r.syncer.Applier.Check(ctx, r.creating(), steps.apply)
		r.addReport(report, steps)
		return report.Conflicts, err
	}
	forbidden, err := r.forbidden(ctx, steps.planned)
	if err != nil {
		return nil, err
	}
	if len(forbidden) > 0 {
		r.result.Failures = slices.Concat(forbidden, r.result.Failures)
		return nil, nil
	}
	if r.request.Planned != nil {
		if err := r.request.Planned(planned); err != nil {
			return nil, err
		}
	}
	target, err := r.target(ctx)
	if err != nil {
		return nil, err
	}
	report, err := r.syncer.Applier.Apply(ctx, target, steps.apply, r.progress())
	r.addReport(report, steps)
	done := err == nil && report.IsClean()
	if kept := r.keep(ctx, state, steps, report.Written, done); err == nil {
		err = kept
	}
	if err != nil || !done {
		return report.Conflicts, err
	}
	if err := r.syncer.Record(ctx, r.request.Environment, planned.Index); err != nil {
		return nil, err
	}
	r.result.Complete = true
	return nil, nil
}

// creating returns the target namespace, to be created if spec.createNamespace is set.
func (r *syncRun) creating() apply.Target {
	return apply.Target{Namespace: r.request.Environment.Spec.TargetNamespace, Creation: plan.Namespace(r.request.Environment)}
}

// target returns the target namespace, to be created if spec.createNamespace is set and the requester is allowed to create it. When the
// sync was requested the namespace may have existed, so the permission is checked here.
func (r *syncRun) target(ctx context.Context) (apply.Target, error) {
	target := r.creating()
	if target.Creation == nil {
		return target, nil
	}
	lost, err := r.syncer.StateReader.Rights.CheckNow(ctx, *r.request.Requester, access.OfTarget(r.request.Environment))
	if err != nil {
		return target, fmt.Errorf("find out whether %s may create namespace %s: %w", r.request.Requester, target.Namespace, err)
	}
	if lost != "" {
		target.Creation, target.NotCreated = nil, lost
	}
	return target, nil
}

// progress returns a callback that also counts what earlier plans of the run have written.
func (r *syncRun) progress() apply.Progress {
	before := len(r.result.Written)
	if r.request.Progress == nil {
		return nil
	}
	return func(done, total int) { r.request.Progress(before+done, before+total) }
}

// addReport adds the results of steps to the result.
func (r *syncRun) addReport(report apply.Report, steps planSteps) {
	r.result.Unchecked = report.Unchecked
	for _, refusal := range report.Refusals {
		r.result.Failures = append(r.result.Failures, failureOf(refusal))
	}
	for _, written := range report.Written {
		of := steps.planned[written.Step]
		r.result.Written = append(r.result.Written, v1alpha1.ResourceSummary{
			Type: of.Kind, Namespace: of.Namespace, Name: of.Name, ChangeType: of.ChangeType(),
		})
	}
}
