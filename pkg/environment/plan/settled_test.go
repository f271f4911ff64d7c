// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// TestObjectsThatSeemSettled has objects that have everything that was applied and is desired, and must change nevertheless. Each plan is
// compared with that of a merge of all objects.
func TestObjectsThatSeemSettled(t *testing.T) {
	withNote := object(t, web)
	withNote.SetAnnotations(map[string]string{"note": "source"})
	withoutNote := []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchStrategicMerge, Patch: "{metadata: {annotations: {note: null}}}",
	}}
	tests := map[string]struct {
		source  *unstructured.Unstructured
		patches []v1alpha1.Patch
		branch  bool
		// applied is set if the environment made the edit, and jane otherwise.
		applied bool
		edit    func(o *unstructured.Unstructured)
		verb    plan.Verb
	}{
		"nothing has happened": {source: object(t, web), edit: func(*unstructured.Unstructured) {}, verb: plan.Leave},
		"another field of another manager": {
			source: object(t, web), verb: plan.Leave,
			edit: func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) },
		},
		"another field of the environment, whose sync was interrupted": {
			source: object(t, web), applied: true, verb: plan.Update,
			edit: func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) },
		},
		"a list item whose key has a default, changed": {
			source: replaced(t, web, `image: "web:1",`, `image: "web:1", ports: [{containerPort: 53}],`), verb: plan.Update,
			edit: func(o *unstructured.Unstructured) {
				fields := container(t, o)
				fields["ports"] = []any{map[string]any{"containerPort": int64(53), "protocol": "UDP"}}
				set(t, o, []any{fields}, "spec", "template", "spec", "containers")
			},
		},
		"a field of a Branch that the patches remove, added again": {
			source: withNote, patches: withoutNote, branch: true, verb: plan.Update,
			edit: func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"note": "jane"}) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, test.source)
			s.Environment.Spec.Patches = test.patches
			if test.branch {
				s.Environment.Spec.Type = v1alpha1.EnvironmentBranch
				s.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
			}
			s.sync()
			if test.applied {
				o := s.Base[plan.KeyOf(test.source)].DeepCopy()
				test.edit(o)
				s.target.apply(v1alpha1.FieldManager, o)
			} else {
				s.edit("jane", "Deployment", "web", test.edit)
			}
			s.Revision++
			for _, step := range s.plan().Steps {
				if step.Name == "web" && step.Kind == "Deployment" && step.Verb != test.verb {
					t.Errorf("verb = %s, changes %v", step.Verb, step.Changes)
				}
			}
		})
	}
}

// TestNullThatSeemsSettled has a custom resource whose null, which has a meaning, was removed in the target, or is removed by a patch of a
// Branch, in which it was set.
func TestNullThatSeemsSettled(t *testing.T) {
	const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, extra: null}}"
	patch := v1alpha1.Patch{
		Target: v1alpha1.PatchTarget{Kind: "Widget"}, Type: v1alpha1.PatchJSON6902, Patch: `[{"op": "remove", "path": "/spec/extra"}]`,
	}
	for name, edit := range map[string]func(o *unstructured.Unstructured){
		"removed":      func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "extra") },
		"patched away": func(o *unstructured.Unstructured) { set(t, o, "jane", "spec", "extra") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, web), object(t, widget))
			s.Environment.Spec.Include = []v1alpha1.IncludedObject{{APIVersion: "example.com/v1", Kind: "Widget", Name: "w"}}
			if name == "patched away" {
				s.Environment.Spec.Type, s.Environment.Spec.Patches = v1alpha1.EnvironmentBranch, []v1alpha1.Patch{patch}
			}
			s.sync()
			s.edit("jane", "Widget", "w", edit)
			s.plan()
		})
	}
}
