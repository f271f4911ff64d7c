// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/test/testkit/golden"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(converted, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// production returns the objects of a namespace as an API server shows them, by their files.
func production(t testing.TB) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "production", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(file)] = object(t, string(text))
	}
	return found
}

// twin differs from the source in what must differ only.
func twin(found map[string]*unstructured.Unstructured) objectcopy.Target {
	return objectcopy.Target{
		Namespace: "shop-twin", Labels: map[string]string{"configbutler.ai/environment": "twin"}, Marks: objectcopy.DefaultMarks(),
		Selected: objectcopy.SelectorKeys(slices.Collect(maps.Values(found))...), OmittedSecrets: sets.New("web-api-token"),
	}
}

// preview must not do the work of the source.
func preview(found map[string]*unstructured.Unstructured) objectcopy.Target {
	target := twin(found)
	target.Namespace, target.Labels["configbutler.ai/environment"] = "shop-preview", "preview"
	target.OneReplica, target.SuspendCronJobs, target.NoLoadBalancers = true, true, true
	target.Host = func(ingress *unstructured.Unstructured, host string) string {
		if host == "metrics.internal" {
			return ""
		}
		return ingress.GetName() + ".preview.example.com"
	}
	return target
}

func TestGolden(t *testing.T) {
	found := production(t)
	for folder, target := range map[string]objectcopy.Target{"twin": twin(found), "preview": preview(found)} {
		for file, source := range found {
			t.Run(folder+"/"+file, func(t *testing.T) {
				golden.Expect(t, filepath.Join("testdata", folder, file), written(t, target, source))
			})
		}
	}
}

// written returns a copy as YAML, or why there is none.
func written(t *testing.T, target objectcopy.Target, source *unstructured.Unstructured) string {
	t.Helper()
	before := source.DeepCopy()
	copied, omitted, err := target.Copy(source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, source); diff != "" {
		t.Errorf("the source was changed:\n%s", diff)
	}
	if copied == nil {
		return "# omitted: " + omitted + "\n"
	}
	checkFits(t, copied)
	text, err := yaml.Marshal(copied.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkFits expects a copy to have no field that its type does not have.
func checkFits(t *testing.T, copied *unstructured.Unstructured) {
	t.Helper()
	known := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(known), gatewayv1.Install(known))
	var typed runtime.Object
	if err == nil {
		typed, err = known.New(copied.GroupVersionKind())
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(copied.Object, typed, true)
	}
	if err != nil {
		t.Error(err)
	}
}
