// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ofPolicies is the resource of SyncPolicies.
const ofPolicies = "syncpolicies"

// patchRequest is the request to change the spec of an object.
type patchRequest struct {
	target
	// ResourceVersion is that of the object that the user has seen. It is empty if there was none.
	ResourceVersion string         `json:"resourceVersion"`
	Spec            map[string]any `json:"spec"`
}

// check refuses what the page does not change.
func (r *patchRequest) check() error {
	if err := r.target.check(); err != nil {
		return err
	}
	if r.Spec == nil {
		return &refusal{http.StatusBadRequest, "The spec is missing", ""} // A patch with null would clear all of it.
	}
	switch r.Resource {
	case ofPolicies:
		if r.Name != v1alpha1.SyncPolicyName {
			return &refusal{http.StatusBadRequest, "The only SyncPolicy is " + v1alpha1.SyncPolicyName, ""}
		}
		return nil
	case ofEnvironments:
		for field := range r.Spec {
			if !slices.Contains([]string{"autoSync", "shadow"}, field) {
				return &refusal{http.StatusBadRequest, fmt.Sprintf("The page does not change the field %q of environments", field), ""}
			}
		}
		if r.ResourceVersion != "" {
			return nil
		}
		return &refusal{http.StatusBadRequest, "The resourceVersion is missing", ""}
	}
	return &refusal{http.StatusBadRequest, fmt.Sprintf("The page does not change %s", r.Resource), ""}
}

// patch changes the spec of an object, unless it has changed since the user has seen it.
func (w *workspace) patch(c *call) error {
	var request patchRequest
	if err := c.decode(&request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	if err := w.checkAllowed(); err != nil {
		return err
	}
	objects := w.cluster.objectsOf(request.Resource, request.Namespace)
	write := request.update
	if request.ResourceVersion == "" {
		write = request.create
	}
	written, err := write(c, objects)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return &refusal{http.StatusConflict, "It has changed since you have seen it", "Look at it again, and repeat what you want to change"}
	}
	if err != nil {
		return err
	}
	written.SetManagedFields(nil)
	return respond(c, map[string]any{"object": written})
}

func (r *patchRequest) update(c *call, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": r.ResourceVersion}, "spec": r.Spec})
	if err != nil {
		return nil, err
	}
	return objects.Patch(c.r.Context(), r.Name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager: cli.FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
}

func (r *patchRequest) create(c *call, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": r.Spec}}
	object.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
	object.SetKind("SyncPolicy")
	object.SetName(r.Name)
	return objects.Create(c.r.Context(), object, metav1.CreateOptions{
		FieldManager: cli.FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
}
