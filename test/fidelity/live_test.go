// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// parse decodes a file as kubectl does.
func parse(t *testing.T, content string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if content == "" {
		return object
	}
	asJSON, err := yaml.YAMLToJSONStrict([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(asJSON, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// objects returns the objects of a tree's files in the cluster, without the fields that differ between clusters or
// writes.
func (s *testCluster) objects(t *testing.T, tree string) map[string]map[string]any {
	t.Helper()
	out := s.kubectl(t, "get", "--recursive", "-f", filepath.Join(tree, plain), "-o", "json")
	var list unstructured.UnstructuredList
	if err := utiljson.Unmarshal([]byte(out), &list.Object); err != nil {
		t.Fatal(err)
	}
	items, _, err := unstructured.NestedSlice(list.Object, "items")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, item := range items {
		object, _ := item.(map[string]any)
		live := unstructured.Unstructured{Object: object}
		objects[live.GroupVersionKind().GroupKind().String()+"/"+live.GetNamespace()+"/"+live.GetName()] = withoutCluster(object)
	}
	return objects
}

// clusterFields are the fields that differ between clusters or kinds of writes. The list is short and independent of
// the fields that a mirror omits, so that the comparison finds fields that the mirror must not omit.
var clusterFields = [][]string{
	{"status"},
	{"metadata", "creationTimestamp"},
	{"metadata", "generation"},
	{"metadata", "managedFields"},
	{"metadata", "resourceVersion"},
	{"metadata", "uid"},
	{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
}

func withoutCluster(object map[string]any) map[string]any {
	for _, path := range clusterFields {
		unstructured.RemoveNestedField(object, path...)
	}
	if annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(object, "metadata", "annotations")
	}
	if object["kind"] == "Service" && object["apiVersion"] == "v1" {
		withoutAllocated(object)
	}
	return object
}

// chosenNodePort is the only node port in the manifests.
const chosenNodePort = int64(30080)

// withoutAllocated removes what each cluster allocates.
func withoutAllocated(service map[string]any) {
	spec, _ := service["spec"].(map[string]any)
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok && fields["nodePort"] != chosenNodePort {
			delete(fields, "nodePort")
		}
	}
}

// sameObjects compares the objects of two clusters, with a subtest for each object.
func sameObjects(t *testing.T, want, got map[string]map[string]any) {
	for _, name := range paths(want, got) {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want[name], got[name]); diff != "" {
				t.Errorf("object differs (-original +copy):\n%s", diff)
			}
		})
	}
}
