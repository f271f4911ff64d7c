// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// configMap returns a ConfigMap of production of about a kilobyte.
func configMap(name string) *unstructured.Unstructured {
	data := map[string]any{}
	for i := range 20 {
		data[fmt.Sprint("key-", i)] = fmt.Sprint("a value of about forty characters: ", i)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"namespace": "production", "name": name, "uid": name, "resourceVersion": "1"},
	}}
}

// BenchmarkEvent measures an event of an object with and without a copy, for several sizes of the index.
func BenchmarkEvent(b *testing.B) {
	hasher := environmenttest.Planner().Hasher
	for _, test := range []struct{ objects, environments int }{{100, 1}, {100, 10}, {100, 100}, {1, 10_000}} {
		x := index.New()
		for e := range test.environments {
			var records []v1alpha1.EnvironmentDependencyRecord
			for o := range test.objects {
				hash, err := plan.Hash(hasher, configMap(fmt.Sprint(o)))
				if err != nil {
					b.Fatal(err)
				}
				named := v1alpha1.NamespacedObjectReference{Namespace: "production", Name: fmt.Sprint(o)}
				records = append(records, v1alpha1.EnvironmentDependencyRecord{
					Type: v1alpha1.DependencyConfigMap, Source: named, Target: named, Hash: hash,
				})
			}
			x.Set(types.NamespacedName{Namespace: "teams", Name: fmt.Sprint(e)}, records)
		}
		d := New(Config{Index: x, Hasher: hasher})
		for name, object := range map[string]string{"unchanged": "0", "not-copied": "other"} {
			b.Run(fmt.Sprintf("copies=%d/of-one=%d/%s", x.Len(), test.environments, name), func(b *testing.B) {
				change := kubewatch.Change{Operation: kubewatch.Update, Object: configMap(object)}
				watch := watchOf(index.Collection{Type: v1alpha1.DependencyConfigMap, Namespace: "production"})
				b.ReportAllocs()
				for b.Loop() {
					(*watchHandler)(d).Changed(b.Context(), watch, change)
				}
			})
		}
	}
}
