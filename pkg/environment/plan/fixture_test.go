// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

var planner = environmenttest.Planner()

// fixture is a source, a target and the state kept between syncs.
type fixture struct {
	t      testing.TB
	target *namespace
	plan.Input
}

// newFixture returns a fixture whose catalog offers the workloads among the objects.
func newFixture(t testing.TB, source ...*unstructured.Unstructured) *fixture {
	s := &fixture{t: t, target: newNamespace(t), Input: plan.Input{
		Environment: environmenttest.Environment(), Revision: 1, SourceNamespace: "production", Action: v1alpha1.SyncActionAll,
		Base: map[plan.Key]*unstructured.Unstructured{},
	}}
	for _, o := range source {
		s.add(o)
	}
	return s
}

func (s *fixture) add(o *unstructured.Unstructured) {
	o.SetNamespace("production")
	if _, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(o.GetKind())]; ok {
		s.Workloads = append(s.Workloads, o)
	} else {
		s.Source = append(s.Source, o)
	}
}

// drop removes an object from the source and the catalog.
func (s *fixture) drop(kind, name string) {
	is := func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name }
	s.Workloads, s.Source = slices.DeleteFunc(s.Workloads, is), slices.DeleteFunc(s.Source, is)
}

// put replaces an object of the source.
func (s *fixture) put(o *unstructured.Unstructured) {
	s.drop(o.GetKind(), o.GetName())
	s.add(o)
}

func (s *fixture) plan() *plan.Plan {
	s.t.Helper()
	s.Live = s.target.list()
	p, err := planner.Plan(s.t.Context(), s.Input)
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkSame(p)
	return p
}

// checkSame checks that a plan is the same as one that merges all objects, and that uses copies which were made before.
func (s *fixture) checkSame(p *plan.Plan) {
	s.t.Helper()
	in := s.Input
	in.CopyCache = &plan.CopyCache{}
	if _, err := planner.Needs(in); err != nil {
		s.t.Fatal(err)
	}
	merged, err := planner.MergeAll().Plan(s.t.Context(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(merged, p, cmp.AllowUnexported(plan.Plan{})); diff != "" {
		s.t.Errorf("the plan is not that of a merge of all objects (-merged +planned):\n%s", diff)
	}
}

// sync executes a plan, checks its predictions, and checks that a second plan is empty.
func (s *fixture) sync() *plan.Plan {
	s.t.Helper()
	p := s.plan()
	before := s.target.objects
	for _, step := range p.Steps {
		was := before[step.Key].DeepCopy()
		s.target.carryOut(step)
		s.checkPrediction(step, was)
		if step.Desired != nil {
			s.Base[step.Key] = step.Desired
		}
		if step.Verb == plan.Delete {
			delete(s.Base, step.Key)
		}
	}
	s.Index = p.Index
	for _, step := range s.plan().Steps {
		if step.Verb != plan.Leave {
			s.t.Fatalf("second sync has the step %s %v", step, step.Changes)
		}
	}
	return p
}

// checkPrediction checks that a step's object matches its prediction.
func (s *fixture) checkPrediction(step plan.Step, was *unstructured.Unstructured) {
	s.t.Helper()
	live := s.target.objects[step.Key]
	if step.Verb == plan.Delete || step.Verb == plan.Leave {
		if (live == nil) != (step.Verb == plan.Delete || was == nil) {
			s.t.Errorf("%s: %v", step, live)
		}
		return
	}
	// Fields that the server sets cannot be predicted.
	isDefaulted := func(field string) bool {
		return field == "Changed /spec/volumeClaimTemplates" || step.Kind == "Job" && (field == "Added /spec/selector" ||
			strings.HasPrefix(field, "Added /spec/template/metadata"))
	}
	diff := slices.DeleteFunc(differences(s.t, step.After, live), isDefaulted)
	if len(diff) > 0 {
		s.t.Errorf("%s: unpredicted changes: %q", step, diff)
	}
	if step.Verb == plan.Create {
		return
	}
	var said []string
	for _, change := range step.Changes {
		said = append(said, string(change.Change)+" "+change.Path.String())
	}
	if diff = differences(s.t, was, live); !slices.Equal(diff, said) {
		s.t.Errorf("%s: predicted changes %q, actual %q", step, said, diff)
	}
}

func differences(t testing.TB, before, after *unstructured.Unstructured) []string {
	t.Helper()
	found, err := planner.Schemas.Compare(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range found {
		texts = append(texts, string(d.Change)+" "+d.Path.String())
	}
	return texts
}

// lines returns the steps of a plan that change or report something.
func lines(p *plan.Plan) []string {
	var out []string
	for _, step := range p.Steps {
		if !step.Unchanged {
			out = append(out, strings.ReplaceAll(step.String(), "  ", " "))
		}
	}
	return out
}

// edit changes a live object as another manager.
func (s *fixture) edit(manager, kind, name string, do func(o *unstructured.Unstructured)) {
	s.t.Helper()
	for key, live := range s.target.objects {
		if key.Kind == kind && key.Name == name {
			o := live.DeepCopy()
			do(o)
			s.target.update(manager, o)
			return
		}
	}
	s.t.Fatalf("%s %s does not exist", kind, name)
}

func set(t testing.TB, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
