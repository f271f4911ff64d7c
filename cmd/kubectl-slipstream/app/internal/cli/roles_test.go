// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestRoles compares the roles with those of the rendered chart.
func TestRoles(t *testing.T) {
	permits := chartRoles(t)
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		for _, resource := range slices.Compact(slices.Sorted(slices.Values(resourcesOf(permits)))) {
			want := ""
			for _, name := range []string{"slipstream-view", "slipstream-edit", "slipstream-admin"} {
				if want == "" && permitsVerb(permits[name], verb, resource) {
					want = name
				}
			}
			if got := cli.RoleWith(verb, resource); got != want {
				t.Errorf("%s %s: %q, want %q", verb, resource, got, want)
			}
		}
	}
}

func chartRoles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	manifest, err := os.ReadFile("../../../../../artifacts/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]rbacv1.PolicyRule{}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var role rbacv1.ClusterRole
		err := documents.Decode(&role)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && role.Kind == "ClusterRole" {
			found[role.Name] = role.Rules
		}
	}
	if len(found["slipstream-edit"]) == 0 {
		t.Fatal("the manifest has no roles")
	}
	return found
}

// resourcesOf returns all resources of configbutler.ai in the roles for users.
func resourcesOf(roles map[string][]rbacv1.PolicyRule) (resources []string) {
	for _, rule := range slices.Concat(roles["slipstream-view"], roles["slipstream-edit"], roles["slipstream-admin"]) {
		if slices.Contains(rule.APIGroups, v1alpha1.GroupName) {
			resources = append(resources, rule.Resources...)
		}
	}
	return resources
}

func permitsVerb(rules []rbacv1.PolicyRule, verb, resource string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, v1alpha1.GroupName) && slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, resource)
	})
}
