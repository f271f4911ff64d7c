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

// Applier carries out steps in one cluster. It may be used concurrently.
type Applier struct {
	Client dynamic.Interface
	Mapper watch.KindMapper
	// Manager is the field manager.
	Manager string
	// Limiter is waited for before each request.
	Limiter flowcontrol.RateLimiter
	// Concurrency is how many steps are worked on at once, at least 1.
	Concurrency int
}

// Target is where steps are carried out.
type Target struct {
	// Namespace is that of all objects.
	Namespace string
	// Creation is applied if there is no such namespace; nil: then it is not created.
	Creation *unstructured.Unstructured
	// NotCreated says in a clause why it is not created although that was wanted; it may be empty.
	NotCreated string
}

// Progress hears of steps that have been written, one after the other.
type Progress func(done, total int)

// Check makes the dry run. It returns an error if that could not be finished; the report is of what was found until then.
func (a *Applier) Check(ctx context.Context, target Target, steps []Step) (Report, error) {
	r, err := a.newRun(target, steps)
	if err != nil {
		return Report{}, err
	}
	there, err := r.hasNamespace(ctx)
	switch {
	case err != nil:
	case there:
		err = r.tryAll(ctx)
	case target.Creation == nil:
		r.refuse(r.missingNamespace())
	default:
		r.report.Unchecked = true
		_, err = r.createNamespace(ctx, true)
	}
	r.report.sort()
	return r.report, err
}

// Apply makes the dry run and, if nothing stands in the way, carries out the steps. It returns an error if it could not say or
// do everything, for other reasons than those in the report; the report is of what was done until then.
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
	if err := r.tryAll(ctx); err != nil || !r.report.IsClean() {
		return err
	}
	for wave := range waves(r.tasks) {
		if err := r.each(ctx, wave, r.write); err != nil || !r.report.IsClean() {
			return err
		}
	}
	return nil
}

// newRun looks for what can be wrong without asking anybody.
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
