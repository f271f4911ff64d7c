// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestEnvironmentDependencyName(t *testing.T) {
	if got := v1alpha1.EnvironmentDependencyName("alice", v1alpha1.DependencyConfigMap, "app.config"); got != "alice.configmap.app.config" {
		t.Errorf("got %s", got)
	}
	seen := map[string]bool{}
	for _, end := range []string{"", "b", "c", "bc", "-b", ".b"} {
		long := strings.Repeat("a", 230) + strings.Repeat(".a", 5) + end
		name := v1alpha1.EnvironmentDependencyName("alice", v1alpha1.DependencyServiceAccount, long)
		if problems := utilvalidation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if !strings.HasPrefix(name, "alice.serviceaccount.aaa") {
			t.Errorf("%s does not begin with what it is about", name)
		}
		if seen[name] {
			t.Errorf("%s comes twice", name)
		}
		seen[name] = true
	}
}

// TestEnvironmentFieldLabels checks that field selectors of Environments support their state, and that the error for
// another field lists the supported ones.
func TestEnvironmentFieldLabels(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	environments := v1alpha1.SchemeGroupVersion.WithKind("Environment")
	for _, label := range []string{"metadata.name", "metadata.namespace", v1alpha1.EnvironmentStateField} {
		if as, value, err := scheme.ConvertFieldLabel(environments, label, "Synced"); as != label || value != "Synced" || err != nil {
			t.Errorf("%s: %q, %q, %v", label, as, value, err)
		}
	}
	_, _, err := scheme.ConvertFieldLabel(environments, "status.revision", "1")
	if err == nil || !strings.Contains(err.Error(), "status.state") {
		t.Errorf("another field: %v", err)
	}
	if _, _, err := scheme.ConvertFieldLabel(v1alpha1.SchemeGroupVersion.WithKind("AppCatalog"), v1alpha1.EnvironmentStateField,
		""); err == nil {
		t.Error("the field of another kind is admitted")
	}
}

func TestNamespacedNameOfReferences(t *testing.T) {
	for want, ref := range map[string]v1alpha1.ObjectReference{
		"team/shop": {Name: "shop"}, "platform/shop": {Name: "shop", Namespace: "platform"},
	} {
		if got := ref.NamespacedName("team").String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestIncludedResources(t *testing.T) {
	for kind, want := range map[string]string{
		"Certificate": "certificates", "Policy": "policies", "Proxy": "proxies",
		"Gateway": "gateways", "APIKey": "apikeys", "Ingress": "ingresses",
	} {
		got := v1alpha1.IncludedObject{APIVersion: "example.com/v1", Kind: kind, Name: "a"}.Resource()
		if got.Resource != want || got.Group != "example.com" || got.Version != "v1" {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
