// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

type (
	tags = map[string]string
	spec = v1alpha1.AppCatalogSpec
)

// deployment returns a Deployment in a namespace, with labels.
func deployment(name string, labels tags) *unstructured.Unstructured {
	return object("apps/v1", "Deployment", name, labels)
}

func selection(t testing.TB, of spec) capture.Selection {
	t.Helper()
	out, err := capture.NewSelection(&of)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func named(kind v1alpha1.WorkloadKind, name string) []v1alpha1.WorkloadReference {
	return []v1alpha1.WorkloadReference{{Kind: kind, Name: name}}
}

func labelled(labels tags) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: labels} }

func owned(by string, controller *bool, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: by, Name: "a", UID: "u", Controller: controller}})
	return object
}

func TestSelects(t *testing.T) {
	yes, no := true, false
	web := named(v1alpha1.WorkloadDeployment, "web")
	for name, test := range map[string]struct {
		spec   spec
		object *unstructured.Unstructured
		want   bool
	}{
		"named":                      {spec{Workloads: web}, deployment("web", nil), true},
		"another name":               {spec{Workloads: web}, deployment("api", nil), false},
		"the name, of another kind":  {spec{Workloads: web}, object("apps/v1", "StatefulSet", "web", nil), false},
		"the name, of another group": {spec{Workloads: web}, object("example.com/v1", "Deployment", "web", nil), false},
		"matched": {spec{WorkloadSelector: labelled(tags{"app": "web"})},
			object("batch/v1", "CronJob", "a", tags{"app": "web", "x": "y"}), true},
		"not matched": {spec{WorkloadSelector: labelled(tags{"app": "web"})}, deployment("web", tags{"app": "api"}), false},
		"no labels":   {spec{WorkloadSelector: labelled(tags{"app": "web"})}, deployment("web", nil), false},
		"matched by an expression": {spec{WorkloadSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}}}}}, deployment("web", nil), true},
		"everything":                    {spec{WorkloadSelector: labelled(nil)}, object("apps/v1", "DaemonSet", "web", nil), true},
		"everything except other kinds": {spec{WorkloadSelector: labelled(nil)}, object("v1", "ConfigMap", "web", nil), false},
		"named beside a selector": {spec{Workloads: web, WorkloadSelector: labelled(tags{"app": "api"})},
			deployment("web", nil), true},
		"matched beside a name": {spec{Workloads: web, WorkloadSelector: labelled(tags{"app": "api"})},
			deployment("api", tags{"app": "api"}), true},
		"ReplicaSet of a Deployment": {spec{WorkloadSelector: labelled(nil)},
			owned("Deployment", &yes, object("apps/v1", "ReplicaSet", "web-1", nil)), false},
		"ReplicaSet of its own": {spec{WorkloadSelector: labelled(nil)}, object("apps/v1", "ReplicaSet", "web-1", nil), true},
		"Job of a CronJob": {spec{WorkloadSelector: labelled(tags{"app": "web"})},
			owned("CronJob", &yes, object("batch/v1", "Job", "web-1", tags{"app": "web"})), false},
		"StatefulSet of an operator": {spec{WorkloadSelector: labelled(nil)},
			owned("Database", &yes, object("apps/v1", "StatefulSet", "db", nil)), false},
		"owned, but not controlled": {spec{WorkloadSelector: labelled(nil)},
			owned("Thing", &no, object("apps/v1", "StatefulSet", "db", nil)), true},
		"owned without a controller": {spec{WorkloadSelector: labelled(nil)},
			owned("Thing", nil, object("apps/v1", "StatefulSet", "db", nil)), true},
		"controlled, and selected by name": {spec{Workloads: named(v1alpha1.WorkloadStatefulSet, "db")},
			owned("Database", &yes, object("apps/v1", "StatefulSet", "db", nil)), true},
		"nothing": {spec{}, deployment("web", nil), false},
	} {
		if got := selection(t, test.spec).Selects(test.object); got != test.want {
			t.Errorf("%s: selected = %v", name, got)
		}
	}
}

// TestStays has a Deployment web that a catalog holds, and that was deleted in the source or is no longer selected.
func TestStays(t *testing.T) {
	const tracking = "argocd.argoproj.io/instance"
	web := v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadDeployment, Name: "web"}
	fieldsOf := func(pointers ...string) []v1alpha1.IgnoreRule { return []v1alpha1.IgnoreRule{{Fields: pointers}} }
	for name, test := range map[string]struct {
		spec spec
		// labels are the labels with which it was captured.
		labels   tags
		tooLarge bool
		want     bool
	}{
		"named":           {spec: spec{Workloads: []v1alpha1.WorkloadReference{web}}, want: true},
		"no longer named": {spec: spec{Workloads: named(v1alpha1.WorkloadDeployment, "api")}, labels: tags{"app": "web"}},
		"no longer named, and too large to be kept": {
			spec: spec{Workloads: named(v1alpha1.WorkloadDeployment, "api")}, tooLarge: true},
		"no longer named, nor matched": {
			spec: spec{WorkloadSelector: labelled(tags{"app": "api"})}, labels: tags{"app": "web"}},
		"matched as it was": {spec: spec{WorkloadSelector: labelled(tags{"app": "web"})}, labels: tags{"app": "web"}, want: true},
		"of everything":     {spec: spec{WorkloadSelector: labelled(nil)}, want: true},
		"the selector requires another label": {
			spec: spec{WorkloadSelector: labelled(tags{"tier": "gold"})}, labels: tags{"app": "web"}},
		"matched as it was, and too large to be kept": {
			spec: spec{WorkloadSelector: labelled(tags{"app": "web"})}, tooLarge: true, want: true},
		"matched by a mark that is not captured": {
			spec:   spec{WorkloadSelector: labelled(tags{tracking: "shop", "app": "web"})},
			labels: tags{tracking: "shop", "app": "web"}, want: true},
		"matched by such a mark, but not by another label": {
			spec:   spec{WorkloadSelector: labelled(tags{tracking: "shop", "app": "api"})},
			labels: tags{tracking: "shop", "app": "web"}},
		"matched by a label of Jobs that is not captured": {
			spec: spec{WorkloadSelector: labelled(tags{"job-name": "web"})}, want: true},
		"matched by a label that is ignored": {
			spec:   spec{WorkloadSelector: labelled(tags{"app": "web"}), Ignore: fieldsOf("/metadata/labels/app")},
			labels: tags{"app": "web"}, want: true},
		"labels may be ignored, and an existing one does not match": {
			spec:   spec{WorkloadSelector: labelled(tags{"app": "api"}), Ignore: fieldsOf("/metadata/labels/x")},
			labels: tags{"app": "web"}},
		"other fields are ignored": {
			spec:   spec{WorkloadSelector: labelled(tags{"tier": "gold"}), Ignore: fieldsOf("/spec/replicas")},
			labels: tags{"app": "web"}},
		"fields of a manager are ignored": {
			spec: spec{WorkloadSelector: labelled(tags{"app": "web"}),
				Ignore: []v1alpha1.IgnoreRule{{Managers: []string{"argocd-controller"}}}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var rules ignore.Rules
			for _, rule := range test.spec.Ignore {
				rules = ignoring(t, rule.Fields...)
			}
			held := captured(t, deployment("web", test.labels), rules).Object
			if test.tooLarge {
				held = nil
			}
			if got := selection(t, test.spec).Stays(web, held); got != test.want {
				t.Errorf("stays = %v", got)
			}
		})
	}
}

func TestInvalidSelection(t *testing.T) {
	unreadable := spec{WorkloadSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
	if _, err := capture.NewSelection(&unreadable); err == nil {
		t.Error("invalid operator was accepted")
	}
}
