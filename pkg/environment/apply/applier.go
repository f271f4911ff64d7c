// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Applier executes steps in one cluster. It is safe for concurrent use.
type Applier struct {
	Client dynamic.Interface
	Mapper watch.KindMapper
	// Manager is the field manager of all writes.
	Manager string
	// Limiter limits all requests.
	Limiter flowcontrol.RateLimiter
	// Concurrency is the number of steps to execute concurrently, at least 1.
	Concurrency int
}

// Target is the namespace in which steps are executed.
type Target struct {
	// Namespace is the name of the namespace. All objects must be in it.
	Namespace string
	// Creation is applied if the namespace does not exist. If it is nil, the namespace is not created.
	Creation *unstructured.Unstructured
	// NotCreated is an optional clause that explains why Creation is nil.
	NotCreated string
}

// Progress is called after each written step, never concurrently.
type Progress func(done, total int)

// Check makes the dry run. If it returns an error, the report contains the findings so far.
func (a *Applier) Check(ctx context.Context, target Target, steps []Step) (Report, error) {
	r, err := a.newRun(target, steps)
	if err != nil {
		return Report{}, err
	}
	there, err := r.hasNamespace(ctx)
	switch {
	case err != nil:
	case there:
		err = r.dryRunAll(ctx)
	case target.Creation == nil:
		r.refuse(r.namespaceRefusal())
	default:
		r.report.Unchecked = true
		_, err = r.createNamespace(ctx, true)
	}
	r.report.sort()
	return r.report, err
}

// Apply makes the dry run and, if it has no findings, executes the steps. It returns an error for any failure that is
// neither a refusal nor a conflict; the report then contains what was done so far.
func (a *Applier) Apply(ctx context.Context, target Target, steps []Step, progress Progress) (Report, error) {
	r, err := a.newRun(target, steps)
	if err != nil {
		return Report{}, err
	}
	r.progress = progress
	err = r.apply(ctx)
	r.report.sort()
	return r.report, err
}

func (r *run) apply(ctx context.Context) error {
	if err := r.ensureNamespace(ctx); err != nil || !r.report.IsClean() {
		return err
	}
	if err := r.dryRunAll(ctx); err != nil || !r.report.IsClean() {
		return err
	}
	for wave := range batches(r.tasks) {
		if err := r.each(ctx, wave, r.write); err != nil || !r.report.IsClean() {
			return err
		}
	}
	return nil
}

// newRun validates the steps and finds their resources.
func (a *Applier) newRun(target Target, steps []Step) (*run, error) {
	r := &run{Applier: a, target: target}
	for i, step := range steps {
		if err := step.check(target.Namespace); err != nil {
			return nil, err
		}
		kind := step.subject().GroupVersionKind()
		mapping, err := a.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", kind, err)
		}
		r.tasks = append(r.tasks, &task{
			Step: step, index: i, object: objectOf(step.subject()), resource: mapping.Resource, live: step.Live,
			client: a.Client.Resource(mapping.Resource).Namespace(target.Namespace),
		})
	}
	return r, nil
}
