// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

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

// refusals returns why the API server refuses the object of the task, none if the error is not a refusal.
func (t *task) refusals(err error) []Refusal {
	refusals := refusalsOf(t.object, err)
	for i := range refusals {
		refusals[i].step = t.index
	}
	return refusals
}
