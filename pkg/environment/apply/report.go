// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Report is what came of steps.
type Report struct {
	// Refusals say what the cluster does not take, in the order of the steps. If the dry run found them, nothing was written.
	Refusals []Refusal
	// Conflicts are objects that are not what they were when the steps were planned. They were left alone.
	Conflicts []Conflict
	// Written are the steps that were carried out, in their order.
	Written []Written
	// NamespaceCreated says that the namespace was not there and has been created.
	NamespaceCreated bool
	// Unchecked says that the dry run was not made because the namespace is not there.
	Unchecked bool
}

// Refusal says why the cluster does not take an object.
type Refusal struct {
	Object
	// Field is the path of what is wrong, as the API server writes it; empty if it is not about a field.
	Field string
	// Sentence is for people, and on one line. It never holds the content of a Secret.
	Sentence string
	step     int
}

// Conflict says in how far an object is not what it was.
type Conflict struct {
	Object
	// Sentence is for people.
	Sentence string
	step     int
}

// Written is a step that was carried out.
type Written struct {
	// Step is its index.
	Step int
	// Object is what has become of the object, nil if it was deleted.
	Object *unstructured.Unstructured
}

// IsClean says whether nothing stands in the way.
func (r *Report) IsClean() bool { return len(r.Refusals) == 0 && len(r.Conflicts) == 0 }

func (r *Report) sort() {
	slices.SortStableFunc(r.Refusals, func(a, b Refusal) int { return cmp.Compare(a.step, b.step) })
	slices.SortStableFunc(r.Conflicts, func(a, b Conflict) int { return cmp.Compare(a.step, b.step) })
	slices.SortFunc(r.Written, func(a, b Written) int { return cmp.Compare(a.Step, b.Step) })
}
