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
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
)

// unusedResourceVersion is a resourceVersion that no object has. Apply with it creates an object and fails if one exists.
const unusedResourceVersion = "1"

// sender sends the requests of tasks.
type sender struct {
	// manager is the field manager of all writes.
	manager string
	limiter flowcontrol.RateLimiter
}

// send sends a step once.
func (s *sender) send(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	switch {
	case t.Verb == Delete:
		return nil, s.delete(ctx, t, dry)
	case t.replaces:
		return s.replace(ctx, t, dry)
	case len(t.Removal) > 0:
		return s.removeAndApply(ctx, t, dry)
	}
	return s.applyTo(ctx, t, dry)
}

// applyTo applies on condition that the object is still the last version that was read.
func (s *sender) applyTo(ctx context.Context, t *task, dry bool) (*unstructured.Unstructured, error) {
	body := t.Apply.DeepCopy()
	body.SetManagedFields(nil)
	body.SetResourceVersion(unusedResourceVersion)
	if t.live != nil {
		body.SetUID(t.live.GetUID())
		body.SetResourceVersion(t.live.GetResourceVersion())
	}
	content, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode it: %w", err)
	}
	options := s.patchOptions(dry)
	options.Force = ptr.To(true)
	return s.patch(ctx, t, types.ApplyYAMLPatchType, content, options)
}

func (s *sender) patch(
	ctx context.Context, t *task, how types.PatchType, content []byte, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	if err := s.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	return t.client.Patch(ctx, t.object.Name, how, content, options)
}

func (s *sender) patchOptions(dry bool) metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: s.manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRunOption(dry)}
}

func dryRunOption(dry bool) []string {
	if dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// delete deletes on condition that the object is still the last version that was read. It succeeds if the object is already
// being deleted.
func (s *sender) delete(ctx context.Context, t *task, dry bool) error {
	if t.live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := s.limiter.Wait(ctx); err != nil {
		return err
	}
	err := t.client.Delete(ctx, t.object.Name, metav1.DeleteOptions{
		DryRun:            dryRunOption(dry),
		Preconditions:     &metav1.Preconditions{UID: ptr.To(t.live.GetUID()), ResourceVersion: ptr.To(t.live.GetResourceVersion())},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
