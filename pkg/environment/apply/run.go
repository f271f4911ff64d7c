// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// run is one check or execution of steps.
type run struct {
	namespace *targetNamespace
	tasks     []*task
	// concurrency is the number of tasks to execute concurrently.
	concurrency int
	sender      *sender
	pods        *podCheck
	quotas      *quotaCheck
	outcome     *outcome
}

// check makes the dry run without creating the namespace.
func (r *run) check(ctx context.Context) error {
	exists, err := r.namespace.exists(ctx)
	switch {
	case err != nil:
		return err
	case exists:
		return r.dryRunAll(ctx)
	case r.namespace.target.Creation == nil:
		r.outcome.refuse(r.namespace.refusal())
		return nil
	}
	r.outcome.report.Unchecked = true
	_, err = r.namespace.create(ctx, true)
	return err
}

// apply makes the dry run and executes the steps.
func (r *run) apply(ctx context.Context) error {
	if err := r.namespace.ensure(ctx, r.tasks); err != nil || !r.outcome.report.IsClean() {
		return err
	}
	if err := r.dryRunAll(ctx); err != nil || !r.outcome.report.IsClean() {
		return err
	}
	for wave := range batches(r.tasks) {
		if err := r.each(ctx, wave, r.write); err != nil || !r.outcome.report.IsClean() {
			return err
		}
	}
	return nil
}

// dryRunAll makes the dry run of all steps.
func (r *run) dryRunAll(ctx context.Context) error {
	if err := r.each(ctx, r.tasks, r.dryRun); err != nil || !r.outcome.report.IsClean() {
		return err
	}
	refusals, err := r.quotas.refusals(ctx, r.tasks)
	r.outcome.refuse(refusals...)
	return err
}

// dryRun makes the dry run of a step.
func (r *run) dryRun(ctx context.Context, t *task) error {
	object, err := r.sender.sendWithRetry(ctx, t, true)
	if apierrors.IsInvalid(err) && t.isImmutable() {
		t.replaces = true
		object, err = r.sender.sendWithRetry(ctx, t, true)
	}
	if err != nil || t.Verb == Delete {
		return r.outcome.record(t, err)
	}
	refusals, err := r.pods.dryRun(ctx, t, object)
	r.outcome.refuse(refusals...)
	return err
}

// write executes a step.
func (r *run) write(ctx context.Context, t *task) error {
	object, err := r.sender.sendWithRetry(ctx, t, false)
	if err != nil {
		return r.outcome.record(t, err)
	}
	r.outcome.addWritten(t, object)
	return nil
}

// each calls do for the tasks concurrently. After an error, it starts no other call and waits for the running ones.
func (r *run) each(ctx context.Context, tasks []*task, do func(context.Context, *task) error) error {
	group, begin := errgroup.WithContext(ctx)
	group.SetLimit(r.concurrency)
	for _, t := range tasks {
		group.Go(func() error {
			if begin.Err() != nil {
				return context.Cause(begin)
			}
			if err := do(ctx, t); err != nil {
				return fmt.Errorf("%s %s in namespace %s: %w", t.Verb, t.object, r.namespace.target.Namespace, err)
			}
			return nil
		})
	}
	return group.Wait()
}
