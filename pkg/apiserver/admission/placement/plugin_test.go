// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/placement"
)

// created is when everything was created, what is new included.
var created = metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1", CreationTimestamp: created}
}

// stored is what there is: a catalog of production that admits the team's namespaces, and a Branch of base with api.
type stored struct{ failure error }

func (s stored) AppCatalogs(context.Context) ([]v1alpha1.AppCatalog, error) {
	return []v1alpha1.AppCatalog{{
		ObjectMeta: named("platform", "shop"),
		Spec: v1alpha1.AppCatalogSpec{SourceNamespace: "production",
			AccessPolicy: &v1alpha1.CatalogAccessPolicy{NamespacedRules: v1alpha1.NamespacedRules{
				Mode: v1alpha1.AccessModeFromSelector, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
			}}},
	}}, s.failure
}

func (s stored) Environments(context.Context) ([]v1alpha1.Environment, error) {
	base := v1alpha1.Environment{ObjectMeta: named("teams", "base"), Spec: v1alpha1.EnvironmentSpec{
		CatalogRef: v1alpha1.ObjectReference{Namespace: "platform", Name: "shop"}, TargetNamespace: "dev", Type: v1alpha1.EnvironmentShared,
	}}
	bob := *base.DeepCopy()
	bob.Name, bob.Spec.Type = "bob", v1alpha1.EnvironmentBranch
	bob.Spec.BaseEnvironmentRef = &v1alpha1.EnvironmentReference{Name: "base"}
	bob.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "api"}}
	return []v1alpha1.Environment{base, bob}, s.failure
}

func newPlugin(t *testing.T, objects placement.Objects) (*placement.Plugin, *fake.Clientset) {
	t.Helper()
	cluster := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "teams", Labels: map[string]string{"team": "shop"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "others"}})
	plugin := placement.New()
	plugin.SetExternalKubeClientSet(cluster)
	placement.NewInitializer("slipstream-system", objects).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return plugin, cluster
}

func attributes(obj, old runtime.Object, subresource string) admission.Attributes {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	return admission.NewAttributesRecord(obj, old, configbutler.SchemeGroupVersion.WithKind("Any"), "teams", "alice",
		configbutler.SchemeGroupVersion.WithResource("any"), subresource, operation, nil, false, nil)
}

func environment(namespace, target string, workloads ...string) *configbutler.Environment {
	e := &configbutler.Environment{ObjectMeta: named(namespace, "alice"), Spec: configbutler.EnvironmentSpec{
		CatalogRef:      configbutler.ObjectReference{Namespace: "platform", Name: "shop"},
		TargetNamespace: target, Type: configbutler.EnvironmentShared,
	}}
	e.UID = "0" // which would come first, if it had been there
	for _, name := range workloads {
		e.Spec.Type, e.Spec.BaseEnvironmentRef = configbutler.EnvironmentBranch, &configbutler.EnvironmentReference{Name: "base"}
		e.Spec.BranchWorkloads = append(e.Spec.BranchWorkloads, configbutler.WorkloadReference{Kind: configbutler.WorkloadDeployment, Name: name})
	}
	return e
}

func catalog(source string) *configbutler.AppCatalog {
	return &configbutler.AppCatalog{ObjectMeta: named("teams", "mine"), Spec: configbutler.AppCatalogSpec{SourceNamespace: source}}
}

func TestValidate(t *testing.T) {
	elsewhere := environment("teams", "production")
	elsewhere.Labels = map[string]string{"a": "b"}
	for _, test := range []struct {
		name        string
		obj, old    runtime.Object
		subresource string
		want        []string
	}{
		{name: "an environment", obj: environment("teams", "alice")},
		{name: "in a source", obj: environment("teams", "production"), want: []string{
			`Environment.configbutler.ai "alice" is invalid: spec.targetNamespace: Invalid value: "production": must not be the source of a catalog`,
		}},
		{name: "in the server's namespace", obj: environment("teams", "slipstream-system"), want: []string{"the namespace of this server"}},
		{name: "in another's target", obj: environment("teams", "dev"), want: []string{"Environment teams/base has it"}},
		{name: "of a catalog that does not admit it", obj: environment("others", "alice"), want: []string{
			`spec.catalogRef: Invalid value: "platform/shop": must be a catalog that admits Environments of the namespace others`,
		}},
		{name: "of a catalog that admits it by the labels of a namespace that is not there", obj: environment("nowhere", "alice"), want: []string{
			"spec.catalogRef: Invalid value",
		}},
		{name: "a branch", obj: environment("teams", "dev", "web")},
		{name: "a branch with what others have", obj: environment("teams", "dev", "web", "api"), want: []string{
			`spec.branchWorkloads[1]: Invalid value: "Deployment api": must not be in another Branch of the same base: Environment bob has it`,
		}},
		{name: "everything that is wrong", obj: environment("others", "production", "api"), want: []string{
			"spec.targetNamespace: Invalid value", "spec.baseEnvironmentRef.name: Invalid value", "spec.catalogRef: Invalid value",
		}},
		{name: "a change of one that is in the way already", obj: elsewhere, old: environment("teams", "production")},
		{name: "a workload more", obj: environment("teams", "dev", "web", "api"), old: environment("teams", "dev", "web"), want: []string{
			"spec.branchWorkloads[1]",
		}},
		{
			name: "another workload, of one that is in the way already",
			obj:  environment("teams", "dev", "api", "web"), old: environment("teams", "dev", "api"),
		},
		{name: "a status", obj: environment("teams", "production"), subresource: "status"},
		{name: "a catalog", obj: catalog("staging")},
		{name: "a catalog of a target", obj: catalog("dev"), want: []string{
			`AppCatalog.configbutler.ai "mine" is invalid: spec.sourceNamespace: Invalid value: "dev": ` +
				`must not be the target of an environment: Environment teams/`,
		}},
		{name: "a change of a catalog", obj: catalog("dev"), old: catalog("dev")},
		{name: "something else", obj: &configbutler.WatchRule{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin, _ := newPlugin(t, stored{})
			err := plugin.Validate(t.Context(), attributes(test.obj, test.old, test.subresource), nil)
			if len(test.want) == 0 && err != nil {
				t.Fatal(err)
			}
			if len(test.want) > 0 && !apierrors.IsInvalid(err) {
				t.Fatalf("%v, want it to be invalid", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
}

// Nothing is admitted because something cannot be found out.
func TestWhatCannotBeFoundOutIsToBeTriedAgain(t *testing.T) {
	failure := errors.New("no answer")
	for _, obj := range []runtime.Object{environment("teams", "alice"), catalog("staging")} {
		plugin, _ := newPlugin(t, stored{failure: failure})
		err := plugin.Validate(t.Context(), attributes(obj, nil, ""), nil)
		if seconds, again := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !again || seconds == 0 {
			t.Errorf("%T: %v, want to be asked to try again", obj, err)
		}
	}
	plugin, cluster := newPlugin(t, stored{})
	cluster.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, failure })
	if err := plugin.Validate(t.Context(), attributes(environment("teams", "alice"), nil, ""), nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("labels that cannot be read: %v", err)
	}
}

func TestPluginNeedsItsSources(t *testing.T) {
	plugin := placement.New()
	if err := plugin.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), "needs objects") {
		t.Errorf("without objects: %v", err)
	}
	placement.NewInitializer("", stored{}).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), "needs a client") {
		t.Errorf("without a client: %v", err)
	}
}
