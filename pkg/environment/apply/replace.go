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

// isImmutable reports whether some updates of the object require a replacement: it is an immutable ConfigMap or Secret, or
// a Job.
func (t *task) isImmutable() bool {
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

// replace deletes the object and creates it again. After a crash in between, the next plan creates it.
func (r *run) replace(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	if err := r.delete(ctx, t, dry); err != nil {
		return nil, err
	}
	if dry {
		return r.dryRunCreate(ctx, t)
	}
	t.live, t.replaces, t.Removal = nil, false, nil
	return r.applyTo(ctx, t, false)
}

// dryRunCreate dry-runs the creation with a generated name, because the old object still exists. Quotas are not checked for
// both objects.
func (r *run) dryRunCreate(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	object := t.Apply.DeepCopy()
	object.SetName("")
	object.SetGenerateName(t.object.Name + "-")
	tried, err := t.client.Create(ctx, object, metav1.CreateOptions{
		FieldManager: r.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRunOption(true),
	})
	if exceedsQuota(err) {
		return object, nil
	}
	return tried, err
}

// dryRun makes the dry run of a step.
func (r *run) dryRun(ctx context.Context, t *task) error {
	object, err := r.sendWithRetry(ctx, t, true)
	if apierrors.IsInvalid(err) && t.isImmutable() {
		t.replaces = true
		object, err = r.sendWithRetry(ctx, t, true)
	}
	if err != nil || t.Verb == Delete {
		return r.record(t, err)
	}
	return r.dryRunPod(ctx, t, object)
}

// dryRunAll makes the dry run of all steps.
func (r *run) dryRunAll(ctx context.Context) error {
	if err := r.each(ctx, r.tasks, r.dryRun); err != nil || !r.report.IsClean() {
		return err
	}
	return r.checkQuotas(ctx)
}
