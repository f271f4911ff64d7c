// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// A rule without names would allow all Secrets. So an empty list creates no rule.
func TestCredentials(t *testing.T) {
	const name = "slipstream-server-credentials"
	got := objects(t, `{credentials: {shop: [], "*": [], teams: [git, hook], all: ["*"]}}`)
	want := map[string][]rbacv1.PolicyRule{
		"teams": {{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"git", "hook"}, Verbs: []string{"get"}}},
		"all":   {{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range among[*rbacv1.Role](t, got, name) {
		rules[role.Namespace] = role.Rules
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
	if wide := among[*rbacv1.ClusterRole](t, got, name); len(wide) > 0 {
		t.Errorf("unexpected ClusterRole with %v", wide[0].Rules)
	}
	bindings := among[*rbacv1.RoleBinding](t, got, name)
	if len(bindings) != len(want) || len(among[*rbacv1.ClusterRoleBinding](t, got, name)) > 0 {
		t.Errorf("bindings of %d roles = %v", len(want), bindings)
	}
}

// Names of namespaces and accounts can look like numbers or other values of YAML.
func TestNamesAreQuoted(t *testing.T) {
	got := objects(t, `
catalogs: {namespaces: ["2024", "null"]}
credentials: {"1e3": [git]}
metrics: {readers: [{namespace: "0755", name: "true"}]}
`)
	var namespaces []string
	for _, binding := range among[*rbacv1.RoleBinding](t, got, "slipstream-server-catalogs") {
		namespaces = append(namespaces, binding.Namespace)
	}
	slices.Sort(namespaces)
	if want := []string{"2024", "null"}; !slices.Equal(namespaces, want) {
		t.Errorf("namespaces of catalogs = %v, want %v", namespaces, want)
	}
	if role := find[*rbacv1.Role](t, got, "slipstream-server-credentials"); role.Namespace != "1e3" {
		t.Errorf("namespace of the credentials = %q, want 1e3", role.Namespace)
	}
	want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "0755", Name: "true"}}
	if diff := cmp.Diff(want, find[*rbacv1.ClusterRoleBinding](t, got, "slipstream-metrics").Subjects); diff != "" {
		t.Error(diff)
	}
}
