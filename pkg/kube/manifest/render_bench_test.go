// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func BenchmarkRender(b *testing.B) {
	large := readObject(b, filepath.Join("testdata", "configmap-immutable.json"))
	if err := unstructured.SetNestedField(large.Object, strings.Repeat("a line of a file\n", 30_000), "data", "file"); err != nil {
		b.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{
		"ConfigMap":      readObject(b, filepath.Join("testdata", "configmap-immutable.json")),
		"ConfigMapTexts": readObject(b, filepath.Join("testdata", "configmap-texts.json")),
		"ConfigMap500KB": large,
		"Deployment":     readObject(b, filepath.Join("testdata", "deployment.json")),
		"Service":        readObject(b, filepath.Join("testdata", "service-loadbalancer.json")),
	}
	for name, obj := range objects {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Render(obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPath(b *testing.B) {
	location := configMap("shop", "web-7d4b9f")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := location.Path(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkManagedPath(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, managed := ManagedPath("core/v1/configmaps/shop/web-7d4b9f.yaml"); !managed {
			b.Fatal("not managed")
		}
	}
}
