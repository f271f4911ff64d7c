// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const (
	imageAt  = "/spec/template/spec/containers[name=web]/image"
	memoryAt = "/spec/template/spec/containers[name=web]/resources/limits/memory"
)

func container(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	return containers[0].(map[string]any)
}

// janes returns an edit by jane that sets the image and the memory of the only container.
func janes(t *testing.T, image, memory string) func(o *unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		fields := container(t, o)
		fields["image"] = image
		set(t, &unstructured.Unstructured{Object: fields}, memory, "resources", "limits", "memory")
		set(t, o, []any{fields}, "spec", "template", "spec", "containers")
	}
}

// branch returns a fixture after a first sync, in which both sides have changed the image and the memory of web.
func branch(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, object(t, web), object(t, report), object(t, appConfig), object(t, database))
	s.Environment.Spec.Type = v1alpha1.EnvironmentBranch
	s.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
	s.sync()
	s.edit("jane", "Deployment", "web", janes(t, "web:jane", "1Gi"))
	s.put(replaced(t, web, "web:1", "web:2", "64Mi", "128Mi"))
	s.put(replaced(t, appConfig, "info", "debug"))
	s.Revision++
	return s
}

func TestConflicts(t *testing.T) {
	of := v1alpha1.ConflictChoice{Kind: "Deployment", Name: "web"}
	fields := func(fields ...string) []v1alpha1.ConflictChoice {
		return []v1alpha1.ConflictChoice{{Kind: of.Kind, Name: of.Name, Fields: fields}, {Kind: "CronJob", Name: "web"}}
	}
	tests := map[string]struct {
		resolve       v1alpha1.ConflictResolutionSpec
		patch         string
		before        bool
		conflicts     []v1alpha1.FieldConflict
		image, memory string
	}{
		"undecided": {
			conflicts: []v1alpha1.FieldConflict{{Field: imageAt, Managers: []string{"jane"}}, {Field: memoryAt, Managers: []string{"jane"}}},
			image:     "web:jane", memory: "1Gi",
		},
		"half decided": {
			resolve:   v1alpha1.ConflictResolutionSpec{Take: fields(memoryAt)},
			conflicts: []v1alpha1.FieldConflict{{Field: imageAt, Managers: []string{"jane"}}}, image: "web:jane", memory: "1Gi",
		},
		"the image kept, the memory taken": {
			resolve: v1alpha1.ConflictResolutionSpec{Keep: fields(imageAt), Take: fields(memoryAt)}, image: "web:jane", memory: "128Mi",
		},
		"all kept":  {resolve: v1alpha1.ConflictResolutionSpec{Keep: []v1alpha1.ConflictChoice{of}}, image: "web:jane", memory: "1Gi"},
		"all taken": {resolve: v1alpha1.ConflictResolutionSpec{Take: []v1alpha1.ConflictChoice{of}}, image: "web:2", memory: "128Mi"},
		"declared": {
			patch:     "{spec: {template: {spec: {containers: [{name: web, image: 'web:own'}]}}}}",
			conflicts: []v1alpha1.FieldConflict{{Field: memoryAt, Managers: []string{"jane"}}}, image: "web:jane", memory: "1Gi",
		},
		"declared, and known to have changed": {
			patch: "{spec: {template: {spec: {containers: [{name: web, image: 'web:own'}]}}}}", before: true,
			conflicts: []v1alpha1.FieldConflict{
				{Field: imageAt, Managers: []string{v1alpha1.FieldManager}}, {Field: memoryAt, Managers: []string{"jane"}},
			}, image: "web:jane", memory: "1Gi",
		},
		"declared and kept, the rest taken": {
			patch: "{spec: {template: {spec: {containers: [{name: web, image: 'web:own'}]}}}}", before: true,
			resolve: v1alpha1.ConflictResolutionSpec{Keep: fields(imageAt), Take: fields(memoryAt)}, image: "web:own", memory: "128Mi",
		},
		"declared and kept, the rest undecided": {
			patch: "{spec: {template: {spec: {containers: [{name: web, image: 'web:own'}]}}}}", before: true,
			resolve:   v1alpha1.ConflictResolutionSpec{Keep: fields(imageAt)},
			conflicts: []v1alpha1.FieldConflict{{Field: memoryAt, Managers: []string{"jane"}}}, image: "web:jane", memory: "1Gi",
		},
		"another field declared": {
			patch: "{spec: {paused: true}}", before: true, image: "web:jane", memory: "1Gi",
			conflicts: []v1alpha1.FieldConflict{{Field: imageAt, Managers: []string{"jane"}}, {Field: memoryAt, Managers: []string{"jane"}}},
		},
		"declared, the rest kept": {
			patch:   "{spec: {template: {spec: {containers: [{name: web, image: 'web:own'}]}}}}",
			resolve: v1alpha1.ConflictResolutionSpec{Keep: fields(memoryAt)}, image: "web:own", memory: "1Gi",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := branch(t)
			s.Resolution = test.resolve
			if test.before {
				s.Previous = []*unstructured.Unstructured{object(t, web)}
			}
			if test.patch != "" {
				s.Environment.Spec.Patches = []v1alpha1.Patch{{
					Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchStrategicMerge, Patch: test.patch,
				}}
			}
			p := s.sync()
			var want []v1alpha1.WorkloadConflict
			if test.conflicts != nil {
				want = []v1alpha1.WorkloadConflict{{Kind: "Deployment", Name: "web", Fields: test.conflicts}}
			}
			if diff := cmp.Diff(want, p.Conflicts); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			live := s.target.objects[plan.KeyOf(object(t, web))]
			memory, _, _ := unstructured.NestedString(container(t, live), "resources", "limits", "memory")
			if image := container(t, live)["image"]; image != test.image || memory != test.memory {
				t.Errorf("image = %v, memory = %v", image, memory)
			}
			config := s.target.objects[plan.KeyOf(object(t, appConfig))]
			if level, _, _ := unstructured.NestedString(config.Object, "data", "level"); level != "debug" {
				t.Errorf("level of the ConfigMap = %s", level)
			}
			web := []v1alpha1.WorkloadChange{{Kind: of.Kind, Name: of.Name, ChangeType: v1alpha1.ChangeChanged}}
			if diff := cmp.Diff(web, workloads(p)); want != nil && diff != "" {
				t.Errorf("workloads that change: want -, got +:\n%s", diff)
			}
			s.checkShown(p, test.conflicts)
			s.Resolution = v1alpha1.ConflictResolutionSpec{}
			if again := s.plan(); len(again.Conflicts) != len(want) {
				t.Errorf("conflicts that were resolved: %v", again.Conflicts)
			}
		})
	}
}

// checkShown checks the conflicts in a diff.
func (s *fixture) checkShown(p *plan.Plan, conflicts []v1alpha1.FieldConflict) {
	s.t.Helper()
	var shown []v1alpha1.FieldConflict
	values := map[string]string{imageAt: `"web:jane" "web:2"`, memoryAt: `"1Gi" "128Mi"`}
	for _, change := range p.Changes(plan.HideSecrets) {
		for _, field := range change.Fields {
			if field.Conflict {
				shown = append(shown, v1alpha1.FieldConflict{Field: field.Field, Managers: field.Owners})
				if got := value(field.Before) + " " + value(field.After); got != values[field.Field] {
					s.t.Errorf("%s: %s, want %s", field.Field, got, values[field.Field])
				}
			}
		}
	}
	if diff := cmp.Diff(conflicts, shown); diff != "" {
		s.t.Errorf("shown: want -, got +:\n%s", diff)
	}
}

// TestConflictsHideValues shows conflicts of objects whose values must not be shown.
func TestConflictsHideValues(t *testing.T) {
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"password": password}}}
	}
	for name, test := range map[string]struct {
		kind   string
		hidden bool
		values plan.Values
		want   bool
	}{
		"a Secret":           {kind: "Secret", values: plan.HideSecrets, want: true},
		"a Secret, unhidden": {kind: "Secret", values: plan.ShowSecrets},
		"an unread object":   {kind: "ConfigMap", hidden: true, values: plan.ShowSecrets, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Plan{
				Steps: []plan.Step{{
					Key: plan.Key{GroupKind: schema.GroupKind{Kind: test.kind}, Name: "db"}, Verb: plan.Leave, Hidden: test.hidden,
					Live: secret("here"), Offered: secret("offered"),
				}},
				Conflicts: []v1alpha1.WorkloadConflict{{
					Kind: v1alpha1.WorkloadKind(test.kind), Name: "db", Fields: []v1alpha1.FieldConflict{{Field: "/data/password"}},
				}},
			}
			field := p.Changes(test.values)[0].Fields[0]
			if field.Hidden != test.want || (field.Before == nil) != test.want || (field.After == nil) != test.want {
				t.Errorf("%+v", field)
			}
		})
	}
}

// TestBase plans a Branch in the target of its base.
func TestBase(t *testing.T) {
	base := newFixture(t, object(t, web), object(t, report), object(t, appConfig), object(t, reportConfig), object(t, database))
	base.sync()
	own := *base
	own.Environment = environmenttest.Environment()
	own.Environment.Name, own.Environment.UID = "alice-web", "22222222-2222-2222-2222-222222222222"
	own.Environment.Spec.Type = v1alpha1.EnvironmentBranch
	own.Environment.Spec.BaseEnvironmentRef = &v1alpha1.EnvironmentReference{Name: "alice"}
	own.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
	own.Base, own.Index = map[plan.Key]*unstructured.Unstructured{}, nil
	own.Related, base.Related = []*v1alpha1.Environment{base.Environment}, []*v1alpha1.Environment{own.Environment}
	own.put(replaced(t, web, "web:1", "web:2"))
	p := own.sync()
	for _, want := range []string{
		"leave ConfigMap app-config: environment alice holds it", "leave Secret database: environment alice holds it",
	} {
		if got := lines(p); got[0] != want && got[1] != want {
			t.Errorf("steps = %q, want %s", got, want)
		}
	}
	live := own.target.objects[plan.KeyOf(object(t, web))]
	if !plan.Owns(own.Environment, live) || container(t, live)["image"] != "web:2" || len(p.NotOurs) > 0 {
		t.Errorf("Branch did not take over the workload: steps %q, not ours %v", lines(p), p.NotOurs)
	}
	base.put(replaced(t, web, "web:1", "web:3"))
	base.put(replaced(t, appConfig, "info", "debug"))
	want := []string{
		"update ConfigMap app-config: Deployment web refers to it /data/level", "leave Deployment web: a Branch holds it",
	}
	if diff := cmp.Diff(want, lines(base.sync())); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	own.Environment.DeletionTimestamp = &metav1.Time{}
	if got := lines(base.sync()); len(got) != 1 || got[0] != "leave Deployment web: environment alice-web holds it" {
		t.Errorf("steps while the Branch is deleted: %q", got)
	}
	delete(base.target.objects, plan.KeyOf(object(t, web)))
	if got := lines(base.sync()); len(got) != 1 || got[0] != "create Deployment web: the catalog offers it" {
		t.Errorf("steps after the Branch was deleted: %q", got)
	}
}

// value returns a value of a diff, or nothing if there is none.
func value(json *string) string {
	if json == nil {
		return ""
	}
	return *json
}
