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

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// plans bounds how often a run plans because others write what it writes.
const plans = 5

// ErrContended says that a run was not done because of others.
var ErrContended = errors.New("others write what it writes, all the time")

// Syncer syncs environments. It may be used concurrently, by one run of each environment.
type Syncer struct {
	StateReader *StateReader
	Applier     *apply.Applier
	Copies      *copies.Copies
	Records     Records
	// Dependencies reads and deletes EnvironmentDependencies.
	Dependencies typed.EnvironmentDependenciesGetter
	Index        *index.Index
}

// Records writes the records that the API lets nobody write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) error
}

// Mode is how far a run goes.
type Mode int

const (
	// ModeSync does everything.
	ModeSync Mode = iota
	// ModeDryRun plans, and has the cluster try what is planned. Nothing is written.
	ModeDryRun
	// ModePlan only plans.
	ModePlan
)

// Request says what is to be synced.
type Request struct {
	Environment *v1alpha1.Environment
	// Revision is that of the catalog which the environment is to have, as it had it if that is known; 0 for the one that the
	// catalog offers now.
	Revision int64

	Action     v1alpha1.SyncAction
	Only       []v1alpha1.WorkloadReference
	Force      bool
	Resolution v1alpha1.ConflictResolutionSpec
	// Requester is the user who must have the permission to read what the catalog's editor does not share. Requests that copy
	// nothing leave it nil.
	Requester *access.Holder

	Mode Mode
	// Planned hears of what is about to be written, each time it is planned, and ends the run if it fails. It may be nil.
	Planned func(*plan.Plan) error
	// Progress hears of steps that have been written, one after the other. It may be nil.
	Progress apply.Progress
}

// Result is what came of a run.
type Result struct {
	// Revision is the catalog's that the plan brings.
	Revision int64
	// Plan is the one that was made last.
	Plan *plan.Plan
	// Failures are the objects because of which the run has not ended well: missing in the source, not ours, being deleted, refused by
	// the cluster. If any is refused by the dry run, or is a custom resource that the Requester may not write, nothing was written.
	Failures []v1alpha1.ObjectFailure
	// Refused says that the cluster has refused something.
	Refused bool
	// Unchecked says that nothing could be tried because there is no target yet.
	Unchecked bool
	// NamespaceCreated says that the target was not there and has been created.
	NamespaceCreated bool
	// Written are the objects that were written, in the order in which they were.
	Written []v1alpha1.ResourceSummary
	// Complete says that all that was planned is done and recorded. There may be failures and conflicts all the same.
	Complete bool
}

// Run syncs an environment. It returns an error if it could not find out or do everything for another reason than those in the
// result, and is to be repeated; the result is of what was done until then.
func (r *Syncer) Run(ctx context.Context, request Request) (Result, error) {
	of := &running{Syncer: r, Request: request}
	if err := of.run(ctx); err != nil {
		return of.result, fmt.Errorf("sync environment %s/%s: %w", request.Environment.Namespace, request.Environment.Name, err)
	}
	return of.result, nil
}

// errNoRequester is returned for a Sync without a Requester.
var errNoRequester = errors.New("the requester is missing")

// running is a run that goes on.
type running struct {
	*Syncer
	Request
	result Result
}

func (r *running) run(ctx context.Context) error {
	if r.Mode == ModeSync && r.Requester == nil {
		return errNoRequester
	}
	var changed []apply.Conflict
	for range plans {
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

// once plans, and carries the plan out. It returns what somebody else has changed since it was planned.
func (r *running) once(ctx context.Context) ([]apply.Conflict, error) {
	situation, err := r.StateReader.Read(ctx, r.Request)
	if err != nil {
		return nil, err
	}
	planned, err := r.StateReader.Planner.Plan(ctx, situation)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	r.result.Plan, r.result.Revision, r.result.Failures = planned, situation.Revision, planned.Failures()
	s := stepsOf(planned)
	switch r.Mode {
	case ModePlan:
		return nil, nil
	case ModeDryRun:
		report, err := r.Applier.Check(ctx, r.creating(), s.apply)
		r.take(report, s)
		return report.Conflicts, err
	}
	forbidden, err := r.forbidden(ctx, s.planned)
	if err != nil {
		return nil, err
	}
	if len(forbidden) > 0 {
		r.result.Failures = slices.Concat(forbidden, r.result.Failures)
		return nil, nil
	}
	if r.Planned != nil {
		if err := r.Planned(planned); err != nil {
			return nil, err
		}
	}
	target, err := r.target(ctx)
	if err != nil {
		return nil, err
	}
	report, err := r.Applier.Apply(ctx, target, s.apply, r.progress())
	r.take(report, s)
	done := err == nil && report.IsClean()
	if kept := r.keep(ctx, situation, s, report.Written, done); err == nil {
		err = kept
	}
	if err != nil || !done {
		return report.Conflicts, err
	}
	if err := r.Record(ctx, r.Environment, planned.Index); err != nil {
		return nil, err
	}
	r.result.Complete = true
	return nil, nil
}

// creating is the target, created if the environment says so.
func (r *running) creating() apply.Target {
	return apply.Target{Namespace: r.Environment.Spec.TargetNamespace, Creation: plan.Namespace(r.Environment)}
}

// target is the target, created if the environment says so and whoever has it synced may create namespaces. When they asked for the
// sync, the namespace may have been there.
func (r *running) target(ctx context.Context) (apply.Target, error) {
	target := r.creating()
	if target.Creation == nil {
		return target, nil
	}
	lost, err := r.StateReader.Rights.Check(ctx, *r.Requester, access.OfTarget(r.Environment))
	switch {
	case err != nil && ctx.Err() != nil:
		return target, err
	case err != nil:
		target.Creation, target.NotCreated = nil, fmt.Sprintf("whether %s may create it is not known: %v", r.Requester, err)
	case lost != "":
		target.Creation, target.NotCreated = nil, lost
	}
	return target, nil
}

// progress counts what earlier plans of the run have written as well.
func (r *running) progress() apply.Progress {
	before := len(r.result.Written)
	if r.Progress == nil {
		return nil
	}
	return func(done, total int) { r.Progress(before+done, before+total) }
}

// take takes up what came of steps.
func (r *running) take(report apply.Report, s steps) {
	r.result.NamespaceCreated = r.result.NamespaceCreated || report.NamespaceCreated
	r.result.Unchecked, r.result.Refused = report.Unchecked, len(report.Refusals) > 0
	for _, refusal := range report.Refusals {
		r.result.Failures = append(r.result.Failures, failureOf(refusal))
	}
	for _, written := range report.Written {
		of := s.planned[written.Step]
		r.result.Written = append(r.result.Written, v1alpha1.ResourceSummary{
			Type: of.Kind, Namespace: of.Namespace, Name: of.Name, ChangeType: of.ChangeType(),
		})
	}
}
