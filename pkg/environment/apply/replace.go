// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isFixed says whether the object is one that can only be replaced when it is to be another: an immutable ConfigMap or Secret,
// or a Job.
func (t *task) isFixed() bool {
	if t.Verb != Update {
		return false
	}
	switch t.object.GroupKind {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return true
	case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}:
		immutable, _, _ := unstructured.NestedBool(t.live.Object, "immutable")
		return immutable
	}
	return false
}

// replace deletes the object and creates it again. Whoever dies in between finds none, and creates it.
func (r *run) replace(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	if err := r.delete(ctx, t, dry); err != nil {
		return nil, err
	}
	if dry {
		return r.tryUnderAnotherName(ctx, t)
	}
	t.live, t.replaces, t.Removal = nil, false, nil
	return r.applyTo(ctx, t, false)
}

// tryUnderAnotherName tries to create the object beside the one that is there. That both have room is not asked for.
func (r *run) tryUnderAnotherName(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	object := t.Apply.DeepCopy()
	object.SetName("")
	object.SetGenerateName(t.object.Name + "-")
	tried, err := t.client.Create(ctx, object, metav1.CreateOptions{
		FieldManager: r.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(true),
	})
	if exceedsQuota(err) {
		return object, nil
	}
	return tried, err
}

// try makes the dry run of a step.
func (r *run) try(ctx context.Context, t *task) error {
	object, err := r.attempt(ctx, t, true)
	if apierrors.IsInvalid(err) && t.isFixed() {
		t.replaces = true
		object, err = r.attempt(ctx, t, true)
	}
	if err != nil || t.Verb == Delete {
		return r.settle(t, err)
	}
	return r.tryPod(ctx, t, object)
}

// tryAll makes the dry run of all steps.
func (r *run) tryAll(ctx context.Context) error {
	if err := r.each(ctx, r.tasks, r.try); err != nil || !r.report.IsClean() {
		return err
	}
	return r.countAgainstQuotas(ctx)
}
