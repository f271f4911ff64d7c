// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Report is the result of executing steps.
type Report struct {
	// Refusals are what the cluster refuses, in the order of the steps. If the dry run found them, nothing was written.
	Refusals []Refusal
	// Conflicts are objects that have changed since the steps were planned. They were left alone.
	Conflicts []Conflict
	// Written are the executed steps, in their order.
	Written []Written
	// NamespaceCreated is true if the run has created the namespace.
	NamespaceCreated bool
	// Unchecked is true if the dry run was not made because the namespace does not exist.
	Unchecked bool
}

// Refusal is the reason why the cluster refuses an object.
type Refusal struct {
	Object
	// Field is the path of the invalid field as the API server writes it, empty if the refusal concerns no field.
	Field string
	// Message is a single line for users. It never contains the content of a Secret.
	Message string
	step    int
}

// Conflict describes how an object differs from the planned one.
type Conflict struct {
	Object
	// Message is a clause for users.
	Message string
	step    int
}

// Written is an executed step.
type Written struct {
	// Step is the index of the step.
	Step int
	// Object is the object after the step, nil if it was deleted.
	Object *unstructured.Unstructured
}

// IsClean reports whether there are no refusals and no conflicts.
func (r *Report) IsClean() bool { return len(r.Refusals) == 0 && len(r.Conflicts) == 0 }

func (r *Report) sort() {
	slices.SortStableFunc(r.Refusals, func(a, b Refusal) int { return cmp.Compare(a.step, b.step) })
	slices.SortStableFunc(r.Conflicts, func(a, b Conflict) int { return cmp.Compare(a.step, b.step) })
	slices.SortFunc(r.Written, func(a, b Written) int { return cmp.Compare(a.Step, b.Step) })
}
