// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/kube/restore"
)

// TestRecreateWithNodePort tries the creation of a Service without the node port, which the Service still has then.
func TestRecreateWithNodePort(t *testing.T) {
	const content = `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: x}, spec: {type: NodePort, clusterIP: None, ports: [
	  {port: 80, protocol: TCP, nodePort: 30001}]}}`
	live := parse(t, content)
	live.SetUID("u")
	live.SetResourceVersion("1")
	unstructured.RemoveNestedField(live.Object, "spec", "clusterIP")
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), live)
	client.PrependReactor("create", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
		if _, has := ports[0].(map[string]any)["nodePort"]; has {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "a", field.ErrorList{
				field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30001, "provided port is already allocated"),
			})
		}
		return true, object, nil
	})
	steps, err := reasons.Plan([]restore.State{{
		Object: restore.Object{
			Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Service"},
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Namespace: "x", Name: "a",
		},
		Content: parse(t, content), Live: live, Recreate: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (restore.Writer{Client: client, Planner: reasons}).DryRun(t.Context(), steps[0]); err != nil {
		t.Fatal(err)
	}
	ports, _, _ := unstructured.NestedSlice(steps[0].Result.Object, "spec", "ports")
	if len(steps[0].Refusals) > 0 || ports[0].(map[string]any)["nodePort"] != int64(30001) {
		t.Errorf("refused %v, would become %v", steps[0].Refusals, steps[0].Result.Object)
	}
}

// TestEditedContentConflicts has another user change another field of an object after its content was made, and before the dry run.
func TestEditedContentConflicts(t *testing.T) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	read := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {color: blue, size: "1"}}`)
	read.SetUID("u")
	read.SetResourceVersion("1")
	now := read.DeepCopy()
	now.SetResourceVersion("2")
	if err := unstructured.SetNestedField(now.Object, "2", "data", "size"); err != nil {
		t.Fatal(err)
	}
	for name, edited := range map[string]bool{"made from the object": true, "an earlier state": false} {
		t.Run(name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), now)
			client.PrependReactor("update", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				object := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured)
				if object.GetResourceVersion() != "2" {
					return true, nil, apierrors.NewConflict(resource.GroupResource(), "a", errors.New("the object has been modified"))
				}
				return true, object, nil
			})
			steps, err := reasons.Plan([]restore.State{{
				Object:  restore.Object{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: resource, Namespace: "x", Name: "a"},
				Content: parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {color: red, size: "1"}}`),
				Live:    read, Edited: edited,
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := (restore.Writer{Client: client, Planner: reasons}).DryRun(t.Context(), steps[0]); err != nil {
				t.Fatal(err)
			}
			if refusals := steps[0].Refusals; (len(refusals) > 0) != edited || edited && !strings.Contains(refusals[0].Message, "has been modified") {
				t.Errorf("refused: %+v", refusals)
			}
		})
	}
}
