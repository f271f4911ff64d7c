// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
)

// resourceOf returns the resource of a type.
func resourceOf(of v1alpha1.DependencyType) schema.GroupVersionResource {
	resource := map[v1alpha1.DependencyType]string{
		v1alpha1.DependencyConfigMap: "configmaps", v1alpha1.DependencySecret: "secrets",
		v1alpha1.DependencyService: "services", v1alpha1.DependencyServiceAccount: "serviceaccounts",
	}[of]
	return corev1.SchemeGroupVersion.WithResource(resource)
}

// objectOf returns the index key of an object.
func objectOf(object *unstructured.Unstructured) index.Object {
	return index.Object{Type: v1alpha1.DependencyType(object.GetKind()), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// withoutContent returns an object with only its identity and managedFields.
func withoutContent(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"namespace", "name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "finalizers", "generation", "managedFields"} {
		if value, ok := metadata[field]; ok {
			kept[field] = value
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": kept,
	}}
}

// event returns the event for a change that a comparison has found.
func (f *finding) event() attribution.Event {
	event := attribution.Event{Operation: v1alpha1.OperationUpdate, Resource: resourceOf(f.of.Type), Object: f.object}
	if f.object == nil {
		event.Operation, event.Object = v1alpha1.OperationDelete, &unstructured.Unstructured{Object: map[string]any{}}
		event.Object.SetNamespace(f.of.Namespace)
		event.Object.SetName(f.of.Name)
	}
	return event
}
