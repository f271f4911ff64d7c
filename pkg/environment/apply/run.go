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

// run is one time that steps are tried or carried out.
type run struct {
	*Applier
	target   Target
	tasks    []*task
	progress Progress

	// mu guards the report.
	mu     sync.Mutex
	report Report
}

// task is how far a step has come.
type task struct {
	Step
	index    int
	object   Object
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface
	// live is the object as it was last seen, which differs from Live in nothing that the plan depends on.
	live *unstructured.Unstructured
	// replaces says that the object has to be deleted and created again.
	replaces bool
}

// waves are the steps that are done at once: those of one kind that follow each other, deletions apart.
func waves(tasks []*task) iter.Seq[[]*task] {
	return func(yield func([]*task) bool) {
		for start := 0; start < len(tasks); {
			end := start + 1
			for end < len(tasks) && tasks[end].goesWith(tasks[start]) {
				end++
			}
			if !yield(tasks[start:end]) {
				return
			}
			start = end
		}
	}
}

func (t *task) goesWith(other *task) bool {
	return t.resource == other.resource && (t.Verb == Delete) == (other.Verb == Delete)
}

// each does something for some tasks, several at once. After an error, nothing is begun; what has begun is finished.
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

// settle takes what came of a task into the report. It returns errors that are neither refusals nor conflicts.
func (r *run) settle(t *task, err error) error {
	var changed *overtakenError
	switch refusals := refusalsOf(t.object, err); {
	case err == nil:
		return nil
	case errors.As(err, &changed):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Conflicts = append(r.report.Conflicts, Conflict{t.object, changed.sentence, t.index})
		return nil
	case len(refusals) > 0:
		for i := range refusals {
			refusals[i].step = t.index
		}
		r.refuse(refusals...)
		return nil
	}
	return redacted(t.object, err)
}

func (r *run) refuse(refusals ...Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Refusals = append(r.report.Refusals, refusals...)
}

// write carries out a step.
func (r *run) write(ctx context.Context, t *task) error {
	object, err := r.attempt(ctx, t, false)
	if err != nil {
		return r.settle(t, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Written = append(r.report.Written, Written{t.index, object})
	if r.progress != nil {
		r.progress(len(r.report.Written), len(r.tasks))
	}
	return nil
}
