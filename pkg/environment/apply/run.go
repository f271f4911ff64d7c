// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// run is one check or execution of steps.
type run struct {
	*Applier
	target   Target
	tasks    []*task
	progress Progress

	// mu guards the report.
	mu     sync.Mutex
	report Report
}

// task is the progress of a step.
type task struct {
	Step
	index    int
	object   Object
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface
	// live is the last version that was read. It differs from Live in nothing that the plan depends on.
	live *unstructured.Unstructured
	// replaces is true if the object must be deleted and created again.
	replaces bool
}

// batches splits the tasks into those to execute concurrently: consecutive ones of the same resource, deletions apart.
func batches(tasks []*task) iter.Seq[[]*task] {
	return func(yield func([]*task) bool) {
		for start := 0; start < len(tasks); {
			end := start + 1
			for end < len(tasks) && tasks[end].isConcurrentWith(tasks[start]) {
				end++
			}
			if !yield(tasks[start:end]) {
				return
			}
			start = end
		}
	}
}

func (t *task) isConcurrentWith(other *task) bool {
	return t.resource == other.resource && (t.Verb == Delete) == (other.Verb == Delete)
}

// each calls do for the tasks concurrently. After an error, it starts no other call and waits for the running ones.
func (r *run) each(ctx context.Context, tasks []*task, do func(context.Context, *task) error) error {
	group, begin := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Concurrency, 1))
	for _, t := range tasks {
		group.Go(func() error {
			if begin.Err() != nil {
				return context.Cause(begin)
			}
			if err := do(ctx, t); err != nil {
				return fmt.Errorf("%s %s in namespace %s: %w", t.Verb, t.object, r.target.Namespace, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// record adds the outcome of a task to the report. It returns errors that are neither refusals nor conflicts.
func (r *run) record(t *task, err error) error {
	var changed *changedError
	switch refusals := refusalsOf(t.object, err); {
	case err == nil:
		return nil
	case errors.As(err, &changed):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Conflicts = append(r.report.Conflicts, Conflict{t.object, changed.message, t.index})
		return nil
	case len(refusals) > 0:
		for i := range refusals {
			refusals[i].step = t.index
		}
		r.refuse(refusals...)
		return nil
	}
	return redactedError(t.object, err)
}

func (r *run) refuse(refusals ...Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Refusals = append(r.report.Refusals, refusals...)
}

// write executes a step.
func (r *run) write(ctx context.Context, t *task) error {
	object, err := r.sendWithRetry(ctx, t, false)
	if err != nil {
		return r.record(t, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Written = append(r.report.Written, Written{t.index, object})
	if r.progress != nil {
		r.progress(len(r.report.Written), len(r.tasks))
	}
	return nil
}
