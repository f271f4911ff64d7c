// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/test/testkit/golden"
)

// production returns the objects of a namespace as an API server returns them, and workloads as a catalog captures them.
func production(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "kube", "objectcopy", "testdata", "production", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	var found []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, string(text))
		if _, ok := capture.ReferenceTo(o); ok {
			captured, err := capture.Capture(o, ignore.Rules{})
			if err != nil {
				t.Fatal(err)
			}
			o = captured.Object.DeepCopy()
		}
		found = append(found, o)
	}
	return found
}

func written(p *plan.Plan) string {
	var out strings.Builder
	section := func(title string, lines []string) {
		out.WriteString("# " + title + "\n" + strings.Join(append(lines, ""), "\n"))
	}
	section("steps", lines(p))
	var missing, index []string
	for _, failure := range p.Failures() {
		missing = append(missing, failure.Message)
	}
	for _, row := range p.Index {
		from, to := row.Source, row.Target
		line := fmt.Sprintf("%s %s/%s -> %s/%s %q", row.Type, from.Namespace, from.Name, to.Namespace, to.Name, row.Keys)
		if row.Missing {
			line += " missing"
		}
		if row.Optional {
			line += " optional"
		}
		for _, by := range row.ReferredBy {
			line += fmt.Sprintf("\n  %s %s %s", by.Kind, by.Name, by.Field)
		}
		index = append(index, line)
	}
	section("failures", missing)
	section("reported", p.Warnings)
	section("index", index)
	return out.String()
}

// TestGolden plans the first sync of a namespace with all kinds of objects.
func TestGolden(t *testing.T) {
	s := newFixture(t, production(t)...)
	got := written(s.sync())
	golden.Expect(t, filepath.Join("testdata", "production.txt"), got)
	checkCopies(t, s)
}

// TestPlanIsDeterministic checks that equal inputs have equal plans, and that planning does not modify its input.
func TestPlanIsDeterministic(t *testing.T) {
	s := newFixture(t, production(t)...)
	s.sync()
	s.Revision++
	for _, o := range slices.Concat(s.Workloads, s.Source) {
		o.SetAnnotations(map[string]string{"changed": "yes"})
	}
	var before []*unstructured.Unstructured
	s.Live = s.target.list()
	all := func() []*unstructured.Unstructured {
		return slices.Concat(s.Workloads, s.Source, s.Live, slices.Collect(maps.Values(s.Base)))
	}
	for _, o := range all() {
		before = append(before, o.DeepCopy())
	}
	want, err := planner.Plan(t.Context(), s.Input)
	if err != nil {
		t.Fatal(err)
	}
	byName := func(a, b *unstructured.Unstructured) int {
		return strings.Compare(fmt.Sprint(a.Object), fmt.Sprint(b.Object))
	}
	after := all()
	slices.SortFunc(before, byName)
	slices.SortFunc(after, byName)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("input was modified:\n%s", diff)
	}
	for range 5 {
		for _, list := range [][]*unstructured.Unstructured{s.Workloads, s.Source, s.Live} {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		got, err := planner.Plan(t.Context(), s.Input)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written(want), written(got)); diff != "" {
			t.Errorf("plans differ:\n%s", diff)
		}
	}
}

// checkCopies checks that the target has the copies that pkg/kube/objectcopy makes of the source, with the environment's
// labels.
func checkCopies(t *testing.T, s *fixture) {
	t.Helper()
	for key, live := range s.target.objects {
		if !plan.Owns(s.Environment, live) {
			t.Errorf("%s lacks the labels of the environment", key)
		}
		if live.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" && key.Kind != "StatefulSet" || live.GetOwnerReferences() != nil {
			t.Errorf("%s has labels of another tool: %v", key, live.GetLabels())
		}
	}
	if len(objectcopy.SelectorKeys(s.target.list()...)) == 0 {
		t.Error("no object has a selector")
	}
}
