// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// removeAndApply sends the removal patch and then applies. The dry run sends the patch and the predicted result of both.
func (s *sender) removeAndApply(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	left, err := s.remove(ctx, t, dry)
	if err != nil {
		return nil, err
	}
	if dry {
		return s.dryRunUpdate(ctx, t)
	}
	t.live, t.Removal = left, nil
	return s.applyTo(ctx, t, false)
}

func (s *sender) remove(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	content, err := withPreconditions(t.Removal, t.live)
	if err != nil {
		return nil, err
	}
	left, err := s.patch(ctx, t, types.JSONPatchType, content, s.patchOptions(dry))
	if apierrors.IsNotFound(err) || isInvalidWithoutCause(err) {
		// API servers report a failed test of a JSON patch like this. Only the object shows whether a test has failed.
		return nil, s.checkFailedTest(ctx, t, err)
	}
	return left, err
}

// isInvalidWithoutCause reports whether an error is Invalid and names no field.
func isInvalidWithoutCause(err error) bool {
	status := statusOf(err)
	return status != nil && apierrors.IsInvalid(err) && (status.Details == nil || len(status.Details.Causes) == 0)
}

// checkFailedTest returns a conflict if the object has changed, and the error otherwise.
func (s *sender) checkFailedTest(ctx context.Context, t *task, err error) error {
	known := t.live.GetResourceVersion()
	if err := s.refresh(ctx, t); err != nil {
		return err
	}
	if t.live.GetResourceVersion() == known {
		return err
	}
	return apierrors.NewConflict(t.resource.GroupResource(), t.object.Name, err)
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

// withPreconditions adds tests of the UID and the resourceVersion to a JSON patch.
func withPreconditions(patch []byte, live *unstructured.Unstructured) ([]byte, error) {
	var operations []operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, fmt.Errorf("read what is to be removed: %w", err)
	}
	tests := []operation{
		{Op: "test", Path: "/metadata/uid", Value: live.GetUID()},
		{Op: "test", Path: resourceVersionPath, Value: live.GetResourceVersion()},
	}
	for _, o := range operations {
		if o.Path != resourceVersionPath {
			tests = append(tests, o)
		}
	}
	return json.Marshal(tests)
}

const resourceVersionPath = "/metadata/resourceVersion"

// dryRunUpdate dry-runs an update to the predicted object.
func (s *sender) dryRunUpdate(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	if err := s.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	after := t.After.DeepCopy()
	after.SetManagedFields(nil)
	after.SetUID(t.live.GetUID())
	after.SetResourceVersion(t.live.GetResourceVersion())
	return t.client.Update(ctx, after, metav1.UpdateOptions{
		FieldManager: s.manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRunOption(true),
	})
}
