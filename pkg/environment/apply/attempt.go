// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// attempts bounds how often a step is tried again because the status of its object has changed.
const attempts = 8

// overtakenError says that an object is not the one that a step was planned with.
type overtakenError struct{ sentence string }

func (e *overtakenError) Error() string { return e.sentence }

func overtaken(t *task, what string) error {
	return &overtakenError{fmt.Sprintf("%s %s", t.object, what)}
}

// attempt sends a step, and sends it again as long as only the status of the object has changed.
func (r *run) attempt(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	for range attempts {
		object, err := r.send(ctx, t, dry)
		if !saysConflict(err) {
			return object, err
		}
		if err := r.look(ctx, t); err != nil {
			return nil, err
		}
	}
	return nil, overtaken(t, "is being changed all the time")
}

func saysConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// look finds out what stands in the way of a step. It is nil if that is only the status.
func (r *run) look(ctx context.Context, t *task) error {
	if err := r.Limiter.Wait(ctx); err != nil {
		return err
	}
	found, err := t.client.Get(ctx, t.object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && t.live == nil:
		return nil
	case apierrors.IsNotFound(err):
		return overtaken(t, "has been deleted meanwhile")
	case err != nil:
		return err
	case found.GetDeletionTimestamp() != nil:
		return overtaken(t, "is being deleted")
	case t.live == nil:
		return overtaken(t, "has been created by somebody else meanwhile")
	case found.GetUID() != t.live.GetUID():
		return overtaken(t, "has been replaced by another one of its name meanwhile")
	case !equality.Semantic.DeepEqual(planned(t.live), planned(found)):
		return overtaken(t, "has been changed meanwhile")
	}
	t.live = found
	return nil
}
