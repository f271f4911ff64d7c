// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: extra, labels: {argocd.argoproj.io/instance: shop}}, " +
	"spec: {size: 1}}"

// including returns a fixture whose environment includes objects that its workload does not reference.
func including(t *testing.T) *fixture {
	s := newFixture(t, object(t, operator), object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}"),
		object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {level: info}}"),
		object(t, "{apiVersion: v1, kind: Secret, metadata: {name: extra}, data: {a: aHVudGVyMg==}}"), object(t, widget))
	s.Environment.Spec.Include = []v1alpha1.IncludedObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "extra"}, {APIVersion: "v1", Kind: "Secret", Name: "extra"},
		{APIVersion: "example.com/v1", Kind: "Widget", Name: "extra"},
	}
	return s
}

// TestIncluded copies included objects, updates them, and deletes them when they are no longer included.
func TestIncluded(t *testing.T) {
	s := including(t)
	want := []string{
		"create ServiceAccount operator: Deployment operator refers to it", "create ConfigMap extra: Environment alice refers to it",
		"create Secret extra: Environment alice refers to it", "create Widget extra: spec.include names it",
		"create Deployment operator: the catalog offers it",
	}
	p := s.sync()
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	var index []string
	for _, record := range p.Index {
		if record.ByPatches {
			index = append(index, string(record.Type)+" "+record.Source.Name+" "+record.ReferredBy[0].Field)
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap extra /spec/include/0", "Secret extra /spec/include/1"}, index); diff != "" {
		t.Errorf("referring objects in the record: want -, got +:\n%s", diff)
	}
	live := s.target.objects[plan.KeyOf(object(t, widget))]
	if live == nil || live.GetNamespace() != "shop-alice" || live.GetLabels()["argocd.argoproj.io/instance"] != "" {
		t.Errorf("Widget = %v", live)
	}

	s.put(replaced(t, widget, "size: 1", "size: 2"))
	if diff := cmp.Diff([]string{"update Widget extra: spec.include names it /spec/size"}, lines(s.sync())); diff != "" {
		t.Errorf("steps after a change: want -, got +:\n%s", diff)
	}
	s.Action = v1alpha1.SyncActionCluster
	s.put(replaced(t, widget, "size: 1", "size: 3"))
	s.put(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {level: debug}}"))
	if diff := cmp.Diff([]string{"update ConfigMap extra: the environment's workloads need it /data/level"}, lines(s.sync())); diff != "" {
		t.Errorf("steps of a refresh: want -, got +:\n%s", diff)
	}
	s.Action, s.Environment.Spec.Include = v1alpha1.SyncActionAll, nil
	gone := "nothing needs it any more"
	if diff := cmp.Diff([]string{"delete Widget extra: " + gone, "delete Secret extra: " + gone, "delete ConfigMap extra: " + gone},
		lines(s.sync())); diff != "" {
		t.Errorf("steps with nothing included: want -, got +:\n%s", diff)
	}
}

// TestIncludedObjectsNotCopied checks that an included object that cannot be copied is a failure, and that the target's
// object is kept.
func TestIncludedObjectsNotCopied(t *testing.T) {
	s := including(t)
	s.sync()
	for _, kind := range []string{"ConfigMap", "Widget"} {
		s.drop(kind, "extra")
	}
	key := plan.KeyOf(object(t, widget))
	check := func(copied string, want ...string) {
		t.Helper()
		var got []string
		p := s.plan()
		for _, failure := range p.Failures() {
			got = append(got, failure.Reason+": "+failure.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		for _, step := range p.Steps {
			if step.Verb == plan.Delete || step.Key == key && (step.Verb != plan.Leave || step.Reason != copied) {
				t.Errorf("unexpected step: %s", step)
			}
		}
	}
	check("the source does not have it, and something refers to it",
		"SourceMissing: Failed to sync Widget 'extra' from production - does not exist",
		"SourceMissing: Failed to sync ConfigMap 'extra' from production - does not exist")
	s.DeniedObjects = map[plan.Key]plan.Denial{key: {Reason: v1alpha1.ReasonPermissionLost, Message: "jane may not"}}
	check("it is not read in the source, and spec.include names it",
		"PermissionLost: Failed to sync Widget 'extra' from production - jane may not",
		"SourceMissing: Failed to sync ConfigMap 'extra' from production - does not exist")
	// An object that was stored before its API group was rejected.
	refused := v1alpha1.IncludedObject{APIVersion: "cattle.io/v1", Kind: "Widget", Name: "extra"}
	s.Environment.Spec.Include = append(s.Environment.Spec.Include, refused)
	check("it is not read in the source, and spec.include names it",
		"PermissionLost: Failed to sync Widget 'extra' from production - jane may not",
		"Refused: Failed to sync Widget 'extra' from production - environments copy nothing of the API group cattle.io",
		"SourceMissing: Failed to sync ConfigMap 'extra' from production - does not exist")

	had := maps.Clone(s.Base)
	delete(had, key)
	s.rollBack(1, had)
	if diff := cmp.Diff([]string{"delete Widget extra: nothing needs it any more"}, lines(s.plan())); diff != "" {
		t.Errorf("steps of a rollback: want -, got +:\n%s", diff)
	}
}

func TestCustomKinds(t *testing.T) {
	for group, want := range map[string]bool{
		"example.com": true, "": false, "apps": false, "rbac.authorization.k8s.io": false, "configbutler.ai": false, "cluster.x-k8s.io": true,
		"authorization.openshift.io": false, "cattle.io": false, "notcattle.io": true,
	} {
		if got := plan.IsOnlyIncluded(schema.GroupKind{Group: group, Kind: "Widget"}); got != want {
			t.Errorf("%q: %v", group, got)
		}
	}
}
