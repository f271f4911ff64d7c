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

// removeAndApply takes out what others own, and then applies. The dry run tries the first, and what comes of both.
func (r *run) removeAndApply(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	left, err := r.remove(ctx, t, dry)
	if err != nil {
		return nil, err
	}
	if dry {
		return r.tryAfter(ctx, t)
	}
	t.live, t.Removal = left, nil
	return r.applyTo(ctx, t, false)
}

func (r *run) remove(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	content, err := conditional(t.Removal, t.live)
	if err != nil {
		return nil, err
	}
	left, err := r.patch(ctx, t, types.JSONPatchType, content, r.patchOptions(dry))
	if apierrors.IsNotFound(err) || isMereInvalid(err) {
		// That is how servers say that a test has failed. Whether it has, shows when the object is looked at.
		return nil, r.failedTest(ctx, t, err)
	}
	return left, err
}

// isMereInvalid says whether an error is about no field.
func isMereInvalid(err error) bool {
	status := statusOf(err)
	return status != nil && apierrors.IsInvalid(err) && (status.Details == nil || len(status.Details.Causes) == 0)
}

// failedTest is a conflict if the object is not the one that is known.
func (r *run) failedTest(ctx context.Context, t *task, err error) error {
	known := t.live.GetResourceVersion()
	if err := r.look(ctx, t); err != nil {
		return err
	}
	if t.live.GetResourceVersion() == known {
		return err
	}
	return apierrors.NewConflict(t.resource.GroupResource(), t.object.Name, err)
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

// conditional is a JSON patch that does nothing unless the object is the one that is known.
func conditional(patch []byte, live *unstructured.Unstructured) ([]byte, error) {
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

// tryAfter tries what becomes of the object, as a whole.
func (r *run) tryAfter(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	after := t.After.DeepCopy()
	after.SetManagedFields(nil)
	after.SetUID(t.live.GetUID())
	after.SetResourceVersion(t.live.GetResourceVersion())
	return t.client.Update(ctx, after, metav1.UpdateOptions{
		FieldManager: r.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(true),
	})
}
