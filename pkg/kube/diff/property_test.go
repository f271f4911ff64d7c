// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// keyed are lists of a pod and its containers that have keys, and which.
var keyed = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "ephemeralContainers": {"name"},
	"volumes": {"name"}, "imagePullSecrets": {"name"}, "hostAliases": {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "schedulingGates": {"name"}, "resourceClaims": {"name"},
	"env": {"name"}, "ports": {"containerPort", "protocol"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "claims": {"name"},
}

// deployments returns random Deployments.
func deployments(t testing.TB, seed int64) func(containers int) *unstructured.Unstructured {
	t.Helper()
	source := rand.New(rand.NewSource(seed))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, source, scheme.Codecs).NilChance(0.5).NumElements(1, 3)
	return func(containers int) *unstructured.Unstructured {
		deployment := appsv1.Deployment{}
		fill.Fill(&deployment)
		pod := &deployment.Spec.Template.Spec
		pod.Containers = make([]corev1.Container, containers)
		for i := range pod.Containers {
			fillContainer(fill, &pod.Containers[i], i)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment)
		if err != nil {
			t.Fatal(err)
		}
		deduplicate(fields)
		object := &unstructured.Unstructured{Object: fields}
		object.SetManagedFields(nil)
		object.SetAPIVersion("apps/v1")
		object.SetKind("Deployment")
		return object
	}
}

// fillContainer gives containers of different Deployments the same names, so that they are compared with each other.
func fillContainer(fill *randfill.Filler, container *corev1.Container, i int) {
	fill.Fill(container)
	container.Name = fmt.Sprintf("container-%d", i)
	for n := range container.Env {
		container.Env[n].Name = fmt.Sprintf("ENV,%d]", n)
	}
}

// visit calls a function for each list with keys, and replaces the list by what it returns.
func visit(value any, change func(items []any, keys []string) []any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if items, ok := inner.([]any); ok && keyed[name] != nil {
				value[name] = change(items, keyed[name])
			}
			visit(value[name], change)
		}
	case []any:
		for _, item := range value {
			visit(item, change)
		}
	}
}

// deduplicate leaves what an API server would: items that have their keys, each once.
func deduplicate(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "ownerReferences")
	visit(object, func(items []any, keys []string) []any {
		seen := map[string]bool{}
		return slices.DeleteFunc(items, func(item any) bool {
			fields := item.(map[string]any)
			id := ""
			for _, key := range keys {
				if key == "protocol" && fields[key] == nil {
					fields[key] = "TCP"
				}
				if fields[key] == nil {
					return true
				}
				id += fmt.Sprintf("%v/", fields[key])
			}
			was := seen[id]
			seen[id] = true
			return was
		})
	})
}

func TestRandomObjects(t *testing.T) {
	schemas := offline()
	for seed := range int64(20) {
		next := deployments(t, seed)
		a, b := next(3), next(2)
		if same := compare(t, schemas, a, a.DeepCopy()); len(same) > 0 {
			t.Fatalf("seed %d: differs from itself: %q", seed, same)
		}
		source := rand.New(rand.NewSource(seed))
		shuffled := a.DeepCopy()
		visit(shuffled.Object, func(items []any, _ []string) []any {
			source.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
			return items
		})
		if same := compare(t, schemas, a, shuffled); len(same) > 0 {
			t.Fatalf("seed %d: differs in another order: %q", seed, same)
		}
		if found := compare(t, schemas, a, b); len(found) == 0 {
			t.Fatalf("seed %d: another Deployment does not differ", seed)
		}
		checkBothWays(t, schemas, a, b)
	}
}

// checkBothWays expects the other differences the other way round, and what is said of each to be so.
func checkBothWays(t *testing.T, schemas *diff.Schemas, a, b *unstructured.Unstructured) {
	t.Helper()
	there, err := schemas.Compare(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	back, err := schemas.Compare(t.Context(), b, a)
	if err != nil || len(back) != len(there) {
		t.Fatalf("%d differences there, %d back (%v)", len(there), len(back), err)
	}
	opposite := map[diff.Change]diff.Change{diff.Added: diff.Removed, diff.Removed: diff.Added, diff.Changed: diff.Changed}
	for i, d := range there {
		if !back[i].Path.Equal(d.Path) || !back[i].Whole.Equal(d.Whole) || back[i].Change != opposite[d.Change] {
			t.Errorf("%s %s there, %s %s back", d.Change, d.Path, back[i].Change, back[i].Path)
		}
		if was, is := has(a, d.Whole), has(b, d.Whole); was == (d.Change == diff.Added) || is == (d.Change == diff.Removed) {
			t.Errorf("%s %s: there before is %v, after is %v", d.Change, d.Whole, was, is)
		}
	}
}

func has(object *unstructured.Unstructured, path fieldpath.Path) bool {
	_, ok := path.Lookup(object.Object)
	return ok
}

// BenchmarkCompare compares Deployments of 50 containers, random in every field.
func BenchmarkCompare(b *testing.B) {
	schemas := offline()
	next := deployments(b, 1)
	before := next(50)
	after := before.DeepCopy()
	if err := unstructured.SetNestedField(after.Object, int64(7), "spec", "minReadySeconds"); err != nil {
		b.Fatal(err)
	}
	text, err := before.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	if found, err := schemas.Compare(b.Context(), before, after); err != nil || len(found) != 1 {
		b.Fatalf("%v %v", found, err)
	}
	for b.Loop() {
		if _, err := schemas.Compare(b.Context(), before, after); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(text)), "object-bytes")
}

// BenchmarkCompareSmall compares Deployments of two containers.
func BenchmarkCompareSmall(b *testing.B) {
	schemas := offline()
	before, after := object(b, deployment), object(b, replaced("web:1", "web:2")(deployment))
	for b.Loop() {
		if found, err := schemas.Compare(b.Context(), before, after); err != nil || len(found) != 1 {
			b.Fatalf("%v %v", found, err)
		}
	}
}
