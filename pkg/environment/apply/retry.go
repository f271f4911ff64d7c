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

// maxAttempts limits how often a step is sent because the status of its object has changed.
const maxAttempts = 8

// changedError means that an object is not the one that the step was planned with.
type changedError struct{ message string }

func (e *changedError) Error() string { return e.message }

func changed(t *task, message string) error {
	return &changedError{fmt.Sprintf("%s %s", t.object, message)}
}

// sendWithRetry sends a step, again if only the status of the object has changed.
func (s *sender) sendWithRetry(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	for range maxAttempts {
		object, err := s.send(ctx, t, dry)
		if !isConflict(err) {
			return object, err
		}
		if err := s.refresh(ctx, t); err != nil {
			return nil, err
		}
	}
	return nil, changed(t, "is being changed all the time")
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// refresh reads the object of a step after a conflict. It returns an error unless only the status has changed.
func (s *sender) refresh(ctx context.Context, t *task) error {
	if err := s.limiter.Wait(ctx); err != nil {
		return err
	}
	found, err := t.client.Get(ctx, t.object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && t.live == nil:
		return nil
	case apierrors.IsNotFound(err):
		return changed(t, "has been deleted meanwhile")
	case err != nil:
		return err
	case found.GetDeletionTimestamp() != nil:
		return changed(t, "is being deleted")
	case t.live == nil:
		return changed(t, "was created by another client meanwhile")
	case found.GetUID() != t.live.GetUID():
		return changed(t, "has been replaced by another one of its name meanwhile")
	case !equality.Semantic.DeepEqual(withoutStatus(t.live), withoutStatus(found)):
		return changed(t, "has been changed meanwhile")
	}
	t.live = found
	return nil
}
