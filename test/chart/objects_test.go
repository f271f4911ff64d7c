// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// objects renders the chart and decodes the objects.
func objects(t testing.TB, values string) []runtime.Object {
	t.Helper()
	return decode(t, render(t, values))
}

// decode decodes a manifest. An unknown field of a type of Kubernetes is an error.
func decode(t testing.TB, manifest string) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var all []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := strict.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			object, err = readOther(document)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		all = append(all, object)
	}
}

// readOther decodes an object of a type that is not built into Kubernetes.
func readOther(document []byte) (runtime.Object, error) {
	var content map[string]any
	err := yaml.UnmarshalStrict(document, &content)
	return &unstructured.Unstructured{Object: content}, err
}

// find returns the object with a type and a name, of which exactly one must exist.
func find[T runtime.Object](t testing.TB, all []runtime.Object, name string) T {
	t.Helper()
	found := among[T](t, all, name)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T have the name %s, want one", len(found), *new(T), name)
	}
	return found[0]
}

// among returns the objects with a type and a name.
func among[T runtime.Object](t testing.TB, all []runtime.Object, name string) []T {
	t.Helper()
	var found []T
	for _, each := range all {
		object, ok := each.(T)
		if !ok {
			continue
		}
		accessor, err := meta.Accessor(each)
		if err != nil {
			t.Fatal(err)
		}
		if accessor.GetName() == name {
			found = append(found, object)
		}
	}
	return found
}

// other returns the spec of an object of a kind that is not built into Kubernetes.
func other(t testing.TB, all []runtime.Object, kind, name string) map[string]any {
	t.Helper()
	for _, each := range among[*unstructured.Unstructured](t, all, name) {
		if each.GetKind() == kind {
			spec, _ := each.Object["spec"].(map[string]any)
			return spec
		}
	}
	t.Fatalf("%s %s does not exist", kind, name)
	return nil
}
