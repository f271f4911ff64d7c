// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
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
