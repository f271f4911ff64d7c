// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// Object identifies an object and the version of its type in which it is read and written.
type Object struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// String returns kind and name, as in Deployment/web.
func (o Object) String() string { return o.Kind.Kind + "/" + o.Name }

// State is an object as it was and as it is.
type State struct {
	Object
	// Content is what the object is to be, nil if it is not to exist.
	Content *unstructured.Unstructured
	// Live is the object in the cluster with all its fields, nil if it does not exist.
	Live *unstructured.Unstructured
	// Ignored are fields that Content says nothing about. They stay as in Live.
	Ignored ignore.Rules
	// Recreate has an object that exists deleted and created, instead of updated.
	Recreate bool
	// Edited is set if Content was made from Live: another content of the object is a conflict then, also in a dry run, because Content
	// would take it back.
	Edited bool
}

// Verb is what a step does.
type Verb string

const (
	// Keep leaves an object unchanged.
	Keep Verb = "Keep"
	// Create creates an object.
	Create Verb = "Create"
	// Update changes an object in place.
	Update Verb = "Update"
	// Recreate deletes an object and creates it.
	Recreate Verb = "Recreate"
	// Delete deletes an object.
	Delete Verb = "Delete"
)

// Step is what is done to an object.
type Step struct {
	State
	Verb Verb
	// Wanted is Content with the ignored fields of Live, nil if the object is not to exist.
	Wanted *unstructured.Unstructured
	// Write is the object that is sent, nil for Keep and Delete, and if the object is being deleted.
	Write *unstructured.Unstructured
	// Result is what the API server would make of Write, nil without a dry run, or if one is not possible because the object
	// needs one that is created before it.
	Result *unstructured.Unstructured
	// Refusals are the reasons why the step is not executed: the API server does not accept it, by a dry run, or the object is being
	// deleted.
	Refusals []Refusal
	// Forbidden is set if the API server refuses the step because the user lacks a permission, or because of a policy.
	Forbidden bool
	// Replaceable is set if the API server refuses an update that it may accept as a deletion and creation.
	Replaceable bool
}

// Refusal is why the API server does not accept an object.
type Refusal struct {
	// Field is the field in the notation of the API server, such as spec.selector. Empty if no field is named.
	Field   string
	Message string
}

// String returns field and message.
func (r Refusal) String() string {
	if r.Field == "" {
		return r.Message
	}
	return r.Field + ": " + r.Message
}

// Planner plans how objects get their contents.
type Planner struct {
	// Reasons are annotations that give the reason of a write. They are no part of a content. The first one is set to Reason on each
	// object that is written.
	Reasons []string
	Reason  string
}

// Plan returns the steps in the order in which they are to be executed. It fails on objects without a type.
func (p Planner) Plan(states []State) ([]*Step, error) {
	steps := make([]*Step, len(states))
	for i, state := range states {
		steps[i] = &Step{State: state}
		if err := p.plan(steps[i]); err != nil {
			return nil, fmt.Errorf("plan %s: %w", state.Object, err)
		}
	}
	slices.SortStableFunc(steps, compareSteps)
	return steps, nil
}

func (p Planner) plan(s *Step) (err error) {
	if s.Wanted, err = WithIgnored(s.Ignored, s.Live, s.Content); err != nil {
		return err
	}
	s.Write = nil
	switch {
	case s.Content == nil && s.Live == nil:
		s.Verb = Keep
		return nil
	case s.Content == nil:
		if s.Verb = Delete; s.Live.GetDeletionTimestamp() != nil {
			s.Verb = Keep
		}
		return nil
	case s.Live == nil:
		s.Verb, s.Write = Create, s.Wanted.DeepCopy()
		p.annotate(s)
		return nil
	case s.Live.GetDeletionTimestamp() != nil && !s.Recreate:
		s.Verb, s.Refusals = Update, []Refusal{{Message: deletionOf(s.Live)}}
		return nil
	}
	return p.planExisting(s)
}

// planExisting plans a step for an object that is to exist, and does.
func (p Planner) planExisting(s *Step) error {
	live := p.withoutReasons(s.Live)
	updated, err := Updated(live, s.Wanted)
	if err != nil {
		return err
	}
	isSame := s.Live.GetDeletionTimestamp() == nil && reflect.DeepEqual(updated.Object, live.Object)
	if isSame && s.Recreate {
		// The content can lack a value that the object has: no client requests it any more, which no update changes.
		content, err := p.Content(s.Live)
		if err != nil {
			return err
		}
		isSame = reflect.DeepEqual(content.Object, s.Wanted.Object)
	}
	if isSame {
		s.Verb = Keep
		return nil
	}
	s.Verb, s.Write = Update, updated
	if s.Recreate {
		s.Verb, s.Write = Recreate, s.Wanted.DeepCopy()
	}
	p.annotate(s)
	return nil
}

// deletionOf says that an object is being deleted, and what it waits for.
func deletionOf(object *unstructured.Unstructured) string {
	text := "it is being deleted"
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		text += " and waits for its finalizers (" + strings.Join(finalizers, ", ") + ")"
	}
	return text + "; run the command again when it is deleted"
}

// annotate keeps the annotations that are no content, and sets the reason. The reason of a write is known only if the write changes
// the annotation.
func (p Planner) annotate(s *Step) {
	annotations := s.Write.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	var has map[string]string
	if s.Live != nil && s.Verb == Update {
		has = s.Live.GetAnnotations()
	}
	for i, name := range p.Reasons {
		if value, ok := has[name]; ok {
			annotations[name] = value
		}
		if i == 0 && p.Reason != "" {
			annotations[name] = p.Reason
			if has[name] == p.Reason {
				annotations[name] += " again"
			}
		}
	}
	if len(annotations) > 0 {
		s.Write.SetAnnotations(annotations)
	}
}

// Content returns the canonical form of a live object without the annotations of reasons. It may share values with the object.
func (p Planner) Content(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return manifest.Canonical(p.withoutReasons(live))
}

// withoutReasons returns the object without the annotations of reasons, as a copy if it has any.
func (p Planner) withoutReasons(object *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := object.GetAnnotations()
	before := len(annotations)
	for _, name := range p.Reasons {
		delete(annotations, name)
	}
	if len(annotations) == before {
		return object
	}
	object = object.DeepCopy()
	object.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
	return object
}
