// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	applyv1alpha1 "github.com/configbutler/slipstream/pkg/generated/applyconfiguration/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
)

// TestRulesAreAppliedAsAWhole checks that an applied list of rules replaces the one before and is owned by its applier.
// Rules need no names, so they have no keys for merging.
func TestRulesAreAppliedAsAWhole(t *testing.T) {
	rules := fake.NewClientset().ConfigbutlerV1alpha1().WatchRules("team-a")
	lists := [][]*applyv1alpha1.ResourceRuleApplyConfiguration{
		{rule("deployments"), rule("configmaps")},
		{rule("deployments").WithName("workloads"), rule("configmaps")},
		{rule("ingresses").WithName("network")},
		{rule("ingresses")},
	}
	for i, list := range lists {
		object := applyv1alpha1.WatchRule("rule", "team-a").WithSpec(applyv1alpha1.WatchRuleSpec().WithRules(list...))
		got, err := rules.Apply(context.Background(), object, metav1.ApplyOptions{FieldManager: "jane"})
		if err != nil {
			t.Fatalf("list %d: %v", i, err)
		}
		ofJane, err := applyv1alpha1.ExtractWatchRule(got, "jane")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object.Spec.Rules, ofJane.Spec.Rules); diff != "" {
			t.Errorf("list %d: wrong rules of jane (-want +got):\n%s", i, diff)
		}
	}
	others := applyv1alpha1.WatchRule("rule", "team-a").WithSpec(applyv1alpha1.WatchRuleSpec().WithRules(rule("secrets")))
	if _, err := rules.Apply(context.Background(), others, metav1.ApplyOptions{FieldManager: "joe"}); !apierrors.IsConflict(err) {
		t.Errorf("list of another field manager: %v, want a conflict", err)
	}
}

// TestReferencesAreReplacedAsAWhole checks that a reference is atomic: an applier that names another object does not keep
// the namespace that another manager set.
func TestReferencesAreReplacedAsAWhole(t *testing.T) {
	rules := fake.NewClientset().ConfigbutlerV1alpha1().WatchRules("team-a")
	ctx := context.Background()
	for _, step := range []struct {
		manager   string
		reference *applyv1alpha1.ObjectReferenceApplyConfiguration
	}{
		{"jane", applyv1alpha1.ObjectReference().WithName("theirs").WithNamespace("team-b")},
		{"joe", applyv1alpha1.ObjectReference().WithName("ours")},
	} {
		object := applyv1alpha1.WatchRule("rule", "team-a").
			WithSpec(applyv1alpha1.WatchRuleSpec().WithDestinationRef(step.reference))
		if _, err := rules.Apply(ctx, object, metav1.ApplyOptions{FieldManager: step.manager, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := rules.Get(ctx, "rule", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (v1alpha1.ObjectReference{Name: "ours"}); got.Spec.DestinationRef != want {
		t.Errorf("want %v, got %v", want, got.Spec.DestinationRef)
	}
}

func rule(resources ...string) *applyv1alpha1.ResourceRuleApplyConfiguration {
	return applyv1alpha1.ResourceRule().WithResources(resources...)
}

// TestWorkloadsAreAppliedSideBySide checks that an editor can add or remove workloads of a catalog without those of
// others.
func TestWorkloadsAreAppliedSideBySide(t *testing.T) {
	catalogs := fake.NewClientset().ConfigbutlerV1alpha1().AppCatalogs("team-a")
	ctx := context.Background()
	for _, step := range []struct {
		manager string
		own     []*applyv1alpha1.WorkloadReferenceApplyConfiguration
		want    []v1alpha1.WorkloadReference
	}{
		{
			"jane",
			[]*applyv1alpha1.WorkloadReferenceApplyConfiguration{
				workload(v1alpha1.WorkloadDeployment, "api"), workload(v1alpha1.WorkloadJob, "api"),
			},
			[]v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "api"}, {Kind: v1alpha1.WorkloadJob, Name: "api"}},
		},
		{
			"joe", []*applyv1alpha1.WorkloadReferenceApplyConfiguration{workload(v1alpha1.WorkloadDeployment, "worker")},
			[]v1alpha1.WorkloadReference{
				{Kind: v1alpha1.WorkloadDeployment, Name: "api"}, {Kind: v1alpha1.WorkloadJob, Name: "api"},
				{Kind: v1alpha1.WorkloadDeployment, Name: "worker"},
			},
		},
		{
			"jane", []*applyv1alpha1.WorkloadReferenceApplyConfiguration{workload(v1alpha1.WorkloadJob, "api")},
			[]v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadJob, Name: "api"}, {Kind: v1alpha1.WorkloadDeployment, Name: "worker"}},
		},
	} {
		object := applyv1alpha1.AppCatalog("shop", "team-a").WithSpec(applyv1alpha1.AppCatalogSpec().WithWorkloads(step.own...))
		got, err := catalogs.Apply(ctx, object, metav1.ApplyOptions{FieldManager: step.manager})
		if err != nil {
			t.Fatalf("applying as %s: %v", step.manager, err)
		}
		if diff := cmp.Diff(step.want, got.Spec.Workloads); diff != "" {
			t.Errorf("wrong workloads after %s (-want +got):\n%s", step.manager, diff)
		}
	}
}

func workload(kind v1alpha1.WorkloadKind, name string) *applyv1alpha1.WorkloadReferenceApplyConfiguration {
	return applyv1alpha1.WorkloadReference().WithKind(kind).WithName(name)
}

// TestAnEmptyListOfWhatIsIgnoredStaysEmpty checks that an empty list is preserved by every conversion. It differs from a
// missing list, which gets the default.
func TestAnEmptyListOfWhatIsIgnoredStaysEmpty(t *testing.T) {
	for _, ignore := range [][]v1alpha1.IgnoreRule{nil, {}} {
		spec := v1alpha1.AppCatalogSpec{Ignore: ignore}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var read v1alpha1.AppCatalogSpec
		if err := json.Unmarshal(text, &read); err != nil || (read.Ignore == nil) != (ignore == nil) {
			t.Errorf("%v became %v as JSON, %v", ignore, read.Ignore, err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			t.Fatal(err)
		}
		read = v1alpha1.AppCatalogSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &read); err != nil || (read.Ignore == nil) != (ignore == nil) {
			t.Errorf("%v became %v as fields, %v", ignore, read.Ignore, err)
		}
		var internal configbutler.AppCatalogSpec
		if err := v1alpha1.Convert_v1alpha1_AppCatalogSpec_To_configbutler_AppCatalogSpec(&spec, &internal, nil); err != nil {
			t.Fatal(err)
		}
		if (internal.DeepCopy().Ignore == nil) != (ignore == nil) {
			t.Errorf("%v became %v in the internal version", ignore, internal.Ignore)
		}
	}
}

// TestPartsOfEnvironmentsAreAppliedSideBySide checks that a manager can add and remove its own windows and branch
// workloads without those of others.
func TestPartsOfEnvironmentsAreAppliedSideBySide(t *testing.T) {
	environments := fake.NewClientset().ConfigbutlerV1alpha1().Environments("team-a")
	ctx := context.Background()
	var got *v1alpha1.Environment
	for _, step := range []struct {
		manager string
		spec    *applyv1alpha1.EnvironmentSpecApplyConfiguration
	}{
		{
			"jane",
			applyv1alpha1.EnvironmentSpec().WithSyncWindows(window("nightly"), window("noon")).
				WithBranchWorkloads(workload(v1alpha1.WorkloadJob, "api")),
		},
		{
			"joe",
			applyv1alpha1.EnvironmentSpec().WithSyncWindows(window("freeze")).WithBranchWorkloads(workload(v1alpha1.WorkloadDeployment, "api")),
		},
		{"jane", applyv1alpha1.EnvironmentSpec().WithSyncWindows(window("noon"))},
	} {
		var err error
		object := applyv1alpha1.Environment("alice", "team-a").WithSpec(step.spec)
		if got, err = environments.Apply(ctx, object, metav1.ApplyOptions{FieldManager: step.manager}); err != nil {
			t.Fatalf("applying as %s: %v", step.manager, err)
		}
	}
	if diff := cmp.Diff([]v1alpha1.SyncWindow{{Name: "noon"}, {Name: "freeze"}}, got.Spec.SyncWindows); diff != "" {
		t.Errorf("wrong windows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "api"}}, got.Spec.BranchWorkloads); diff != "" {
		t.Errorf("wrong workloads (-want +got):\n%s", diff)
	}
}

func window(name string) *applyv1alpha1.SyncWindowApplyConfiguration {
	return applyv1alpha1.SyncWindow().WithName(name)
}
