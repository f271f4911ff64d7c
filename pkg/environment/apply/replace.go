// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

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
func (s *sender) replace(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	if err := s.delete(ctx, t, dry); err != nil {
		return nil, err
	}
	if dry {
		return s.dryRunCreate(ctx, t)
	}
	t.live, t.replaces, t.Removal = nil, false, nil
	return s.applyTo(ctx, t, false)
}

// dryRunCreate dry-runs the creation with a generated name, because the old object still exists. Quotas are not checked for
// both objects.
func (s *sender) dryRunCreate(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	if err := s.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	object := t.Apply.DeepCopy()
	object.SetName("")
	object.SetGenerateName(t.object.Name + "-")
	tried, err := t.client.Create(ctx, object, metav1.CreateOptions{
		FieldManager: s.manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRunOption(true),
	})
	if exceedsQuota(err) {
		return object, nil
	}
	return tried, err
}
