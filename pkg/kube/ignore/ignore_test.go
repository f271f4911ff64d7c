// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {example.com/hash: x}
  managedFields:
  - manager: scaler
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:replicas": {}}}
  - manager: injector
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:annotations: {".": {}, f:example.com/hash: {}}}
      f:spec:
        f:template:
          f:spec:
            f:containers:
              k:{"name":"sidecar"}: {".": {}, f:name: {}, f:image: {}}
              k:{"name":"web"}: {f:name: {}, f:args: {}}
            f:tolerations: {}
  - manager: nobody
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"not": "a set"}
spec:
  replicas: 3
  template:
    spec:
      tolerations: [{key: a}, {key: b}]
      containers:
      - {name: web, image: "web:1", args: [a], ports: [{port: 80, protocol: TCP, name: http}, {port: 80, protocol: UDP}]}
      - {name: sidecar, image: "proxy:1"}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// without applies rules to the deployment and returns it as YAML, less its managedFields.
func without(t *testing.T, rules ...ignore.Rule) string {
	t.Helper()
	compiled, err := ignore.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	before := object(t, deployment)
	after := compiled.Without(before).DeepCopy()
	if diff := cmp.Diff(object(t, deployment).Object, before.Object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	after.SetManagedFields(nil)
	out, err := yaml.Marshal(after.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func fields(pointers ...string) ignore.Rule { return ignore.Rule{Fields: pointers} }

func managers(names ...string) ignore.Rule { return ignore.Rule{Managers: names} }

func TestWithout(t *testing.T) {
	whole := without(t)
	group, other := "apps", "batch"
	tests := map[string]struct {
		rule ignore.Rule
		// gone are the lines that are left out, at least; empty: nothing is
		gone []string
		// lines is how many lines go
		lines int
	}{
		"a field":                  {fields("/spec/replicas"), []string{"  replicas: 3"}, 1},
		"a field of a list's item": {fields("/spec/template/spec/containers[name=web]/image"), []string{"image: web:1"}, 1},
		"an item by two keys": {
			fields("/spec/template/spec/containers[name=web]/ports[protocol=TCP,port=80]/name"), []string{"name: http"}, 1,
		},
		"an item":              {fields("/spec/template/spec/containers[name=sidecar]"), []string{"proxy:1", "name: sidecar"}, 2},
		"a value in a list":    {fields("/spec/template/spec/containers[name=web]/args[=a]"), []string{"- a\n"}, 1},
		"an item by its index": {fields("/spec/template/spec/tolerations/1"), []string{"- key: b"}, 1},
		"the last annotation":  {fields("/metadata/annotations/example.com~1hash"), []string{"annotations:", "example.com/hash"}, 2},
		"what is not there": {
			fields("/spec/paused", "/spec/replicas/x", "/spec/template/spec/containers[name=db]", "/spec/template/spec/tolerations/2",
				"/spec/template/spec/containers/image"),
			nil, 0,
		},
		"of the group and kind": {
			ignore.Rule{Group: &group, Kind: "Deployment", Name: "web", Fields: []string{"/spec/replicas"}}, []string{"replicas"}, 1,
		},
		"of another group": {ignore.Rule{Group: &other, Fields: []string{"/spec/replicas"}}, nil, 0},
		"of another kind":  {ignore.Rule{Kind: "StatefulSet", Fields: []string{"/spec/replicas"}}, nil, 0},
		"of another name":  {ignore.Rule{Name: "api", Fields: []string{"/spec/replicas"}}, nil, 0},
		"a manager's":      {managers("scaler"), []string{"replicas: 3"}, 1},
		"an injector's": {
			managers("injector"),
			[]string{"annotations:", "example.com/hash", "args:", "- a", "name: sidecar", "proxy:1", "tolerations:", "key: a", "key: b"}, 9,
		},
		"an unknown manager's":      {managers("nobody", "unknown"), nil, 0},
		"a field while it is owned": {ignore.Rule{Managers: []string{"scaler"}, Fields: []string{"/spec/replicas"}}, []string{"replicas"}, 1},
		"a field that another owns": {ignore.Rule{Managers: []string{"injector"}, Fields: []string{"/spec/replicas"}}, nil, 0},
		"what is owned below a field": {
			ignore.Rule{Managers: []string{"injector"}, Fields: []string{"/metadata/annotations"}}, []string{"annotations:", "hash"}, 2,
		},
		"a part of an owned field": {
			ignore.Rule{Managers: []string{"injector"}, Fields: []string{"/spec/template/spec/tolerations/0"}}, []string{"key: a"}, 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := without(t, tt.rule)
			for _, line := range tt.gone {
				if strings.Contains(got, line) {
					t.Errorf("%q is left:\n%s", line, got)
				}
			}
			if n := strings.Count(whole, "\n") - strings.Count(got, "\n"); n != tt.lines {
				t.Errorf("%d lines went, want %d:\n%s", n, tt.lines, cmp.Diff(whole, got))
			}
		})
	}
}

func TestPointers(t *testing.T) {
	for pointer, ok := range map[string]bool{
		"/spec": true, "/a~0b~1c": true, "/a[b=c]": true, "/a[b=c/d=e]/f": true, "/a[b=,c=d]": true, "/metadata/labels/name": true,
		"": false, "spec": false, "/": false, "/a//b": false, "/a~2": false,
		"/a~": false, "/a[": false, "/a[b]": false, "/a[=c]": true, "/a[b=c": false,
		"/a[=c]/x": true, `/metadata/"name"`: false, "/a]": false, "/a[b=c]d": false, "/a[b=[c]": false, "/[b=c]": false, "/a[]": false,
		"/metadata": false, "/metadata/name": false, "/kind": false, "/apiVersion": false,
	} {
		if err := ignore.CheckPointer(pointer); (err == nil) != ok {
			t.Errorf("%q: %v, want ok %v", pointer, err, ok)
		}
	}
}

func FuzzWithout(f *testing.F) {
	f.Add("/spec/template/spec/containers[name=web]/image", "injector")
	f.Add("/a[b=c]", "")
	f.Fuzz(func(t *testing.T, pointer, manager string) {
		rule := ignore.Rule{Fields: []string{pointer}}
		if manager != "" {
			rule.Managers = []string{manager}
		}
		compiled, err := ignore.Compile([]ignore.Rule{rule})
		if (err == nil) != (ignore.CheckPointer(pointer) == nil) {
			t.Fatalf("checked and compiled differently: %v", err)
		}
		if err != nil {
			return
		}
		once := compiled.Without(object(t, deployment))
		if once.GetName() != "web" || once.GetKind() != "Deployment" || once.GetNamespace() != "shop" {
			t.Errorf("not the same object: %v", once)
		}
	})
}
