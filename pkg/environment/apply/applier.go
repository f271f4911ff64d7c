// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	r, err := a.newRun(target, steps, nil)
	if err != nil {
		return Report{}, err
	}
	err = r.check(ctx)
	return r.outcome.sorted(), err
}

// Apply makes the dry run and, if it has no findings, executes the steps. It returns an error for any failure that is
// neither a refusal nor a conflict; the report then contains what was done so far.
func (a *Applier) Apply(ctx context.Context, target Target, steps []Step, progress Progress) (Report, error) {
	r, err := a.newRun(target, steps, progress)
	if err != nil {
		return Report{}, err
	}
	err = r.apply(ctx)
	return r.outcome.sorted(), err
}

// newRun validates the steps and finds their resources.
func (a *Applier) newRun(target Target, steps []Step, progress Progress) (*run, error) {
	tasks := make([]*task, 0, len(steps))
	for i, step := range steps {
		t, err := a.newTask(target, i, step)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	outcome := &outcome{progress: progress, total: len(steps)}
	sender := &sender{manager: a.Manager, limiter: a.Limiter}
	resource := func(of schema.GroupVersionResource) dynamic.ResourceInterface {
		return a.Client.Resource(of).Namespace(target.Namespace)
	}
	return &run{
		namespace: &targetNamespace{
			target: target, client: a.Client.Resource(namespaces), accounts: resource(serviceAccounts), limiter: a.Limiter,
			sender: sender, outcome: outcome,
		},
		tasks: tasks, concurrency: max(a.Concurrency, 1), sender: sender, outcome: outcome,
		pods:   &podCheck{client: resource(pods), manager: a.Manager, limiter: a.Limiter},
		quotas: &quotaCheck{client: resource(resourceQuotas), limiter: a.Limiter, namespace: target.Namespace},
	}, nil
}

func (a *Applier) newTask(target Target, index int, step Step) (*task, error) {
	if err := step.check(target.Namespace); err != nil {
		return nil, err
	}
	kind := step.subject().GroupVersionKind()
	mapping, err := a.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", kind, err)
	}
	return &task{
		Step: step, index: index, object: objectOf(step.subject()), resource: mapping.Resource, live: step.Live,
		client: a.Client.Resource(mapping.Resource).Namespace(target.Namespace),
	}, nil
}
