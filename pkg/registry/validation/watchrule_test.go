// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func watchRule() *configbutler.WatchRule {
	return &configbutler.WatchRule{
		ObjectMeta: meta("rule"),
		Spec: configbutler.WatchRuleSpec{
			DestinationRef: configbutler.ObjectReference{Name: "destination"},
			ObjectSelector: selector("mirror", "yes"),
			Rules: []configbutler.ResourceRule{{
				Name:        "workloads",
				Operations:  []configbutler.Operation{configbutler.OperationCreate, configbutler.OperationUpdate},
				APIGroups:   []string{"apps", ""},
				APIVersions: []string{"v1"},
				Resources:   []string{"deployments", "configmaps"},
			}},
		},
	}
}

func clusterWatchRule() *configbutler.ClusterWatchRule {
	rule := &configbutler.ClusterWatchRule{
		ObjectMeta: meta("rule"),
		Spec: configbutler.ClusterWatchRuleSpec{
			DestinationRef: configbutler.NamespacedObjectReference{Namespace: "team-a", Name: "destination"},
			Rules: []configbutler.ClusterResourceRule{{
				ResourceRule:      configbutler.ResourceRule{Name: "everything"},
				Scope:             configbutler.ScopeNamespaced,
				NamespaceSelector: selector("mirror", "yes"),
			}},
		},
	}
	rule.Namespace = ""
	return rule
}

func TestWatchRule(t *testing.T) {
	type rule = *configbutler.WatchRule
	checkChanges(t, watchRule, validation.ValidateWatchRule, validation.ValidateWatchRuleUpdate, []change[rule]{
		{name: "another destination", do: func(r rule) {
			r.Spec.DestinationRef = configbutler.ObjectReference{Name: "other", Namespace: "team-b"}
		}},
		{name: "a rule that only has a name", do: func(r rule) { r.Spec.Rules = []configbutler.ResourceRule{{Name: "preset"}} }},
		{name: "two rules", do: func(r rule) { r.Spec.Rules = append(r.Spec.Rules, configbutler.ResourceRule{Name: "preset"}) }},
		{
			name: "no destination", do: func(r rule) { r.Spec.DestinationRef.Name = "" },
			path: "spec.destinationRef.name", says: "Required",
		},
		{
			name: "a selector that cannot be", do: func(r rule) { r.Spec.ObjectSelector = selector("a", "b c") },
			path: "spec.objectSelector.matchLabels", says: "b c",
		},
		{
			name: "no rules", do: func(r rule) { r.Spec.Rules = nil },
			path: "spec.rules", says: "at least one",
		},
		{name: "rules without names", do: func(r rule) {
			r.Spec.Rules = append(r.Spec.Rules, configbutler.ResourceRule{}, configbutler.ResourceRule{})
		}},
		{
			name: "a rule with a name that cannot be", do: func(r rule) { r.Spec.Rules[0].Name = "My Rule" },
			path: "spec.rules[0].name", says: "RFC 1123",
		},
		{
			name: "two rules of one name", do: func(r rule) { r.Spec.Rules = append(r.Spec.Rules, r.Spec.Rules[0]) },
			path: "spec.rules[1].name", says: "Duplicate",
		},
	})
}

func TestResourceRule(t *testing.T) {
	type rule = *configbutler.ResourceRule
	tests := []change[rule]{
		{name: "everything", do: func(r rule) {
			*r = configbutler.ResourceRule{
				Name: "all", Operations: []configbutler.Operation{configbutler.OperationAll},
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
			}
		}},
		{name: "resources in every form", do: func(r rule) {
			r.Resources = []string{"pods", "deployments.apps", "widgets.example.com", "deployments/scale", "pods/*", "*/scale", "*/*", "*.apps"}
		}},
		{
			name: "an unknown operation", do: func(r rule) { r.Operations = []configbutler.Operation{"CONNECT"} },
			path: "spec.rules[0].operations[0]", says: `"*", "CREATE", "UPDATE", "DELETE"`,
		},
		{
			name: "an operation in lower case", do: func(r rule) { r.Operations = []configbutler.Operation{"create"} },
			path: "spec.rules[0].operations[0]", says: `"CREATE"`,
		},
		{
			name: "an operation twice", do: func(r rule) {
				r.Operations = []configbutler.Operation{configbutler.OperationCreate, configbutler.OperationCreate}
			},
			path: "spec.rules[0].operations[1]", says: "Duplicate",
		},
		{
			name: "all operations and one more", do: func(r rule) {
				r.Operations = []configbutler.Operation{configbutler.OperationAll, configbutler.OperationCreate}
			},
			path: "spec.rules[0].operations", says: "beside *",
		},
		{
			name: "a group that cannot be", do: func(r rule) { r.APIGroups = []string{"apps/v1"} },
			path: "spec.rules[0].apiGroups[0]", says: `"" for the core group`,
		},
		{
			name: "all groups and one more", do: func(r rule) { r.APIGroups = []string{"apps", "*"} },
			path: "spec.rules[0].apiGroups", says: "beside *",
		},
		{
			name: "a version that cannot be", do: func(r rule) { r.APIVersions = []string{"apps/v1"} },
			path: "spec.rules[0].apiVersions[0]", says: "such as v1",
		},
		{
			name: "an empty version", do: func(r rule) { r.APIVersions = []string{""} },
			path: "spec.rules[0].apiVersions[0]", says: "such as v1",
		},
		{
			name: "a version twice", do: func(r rule) { r.APIVersions = []string{"v1", "v1"} },
			path: "spec.rules[0].apiVersions[1]", says: "Duplicate",
		},
		{
			name: "a kind for a resource", do: func(r rule) { r.Resources = []string{"Deployment"} },
			path: "spec.rules[0].resources[0]", says: "plural in lower case",
		},
		{
			name: "an empty resource", do: func(r rule) { r.Resources = []string{""} },
			path: "spec.rules[0].resources[0]", says: "plural in lower case",
		},
		{
			name: "a glob", do: func(r rule) { r.Resources = []string{"deploy*"} },
			path: "spec.rules[0].resources[0]", says: "* for every resource",
		},
		{
			name: "a group without an end", do: func(r rule) { r.Resources = []string{"deployments."} },
			path: "spec.rules[0].resources[0]", says: "plural.group",
		},
		{
			name: "two subresources", do: func(r rule) { r.Resources = []string{"pods/a/b"} },
			path: "spec.rules[0].resources[0]", says: "/subresource",
		},
		{
			name: "all resources and one more", do: func(r rule) { r.Resources = []string{"*", "pods"} },
			path: "spec.rules[0].resources", says: "beside *",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			namespaced, cluster := watchRule(), clusterWatchRule()
			test.do(&namespaced.Spec.Rules[0])
			test.do(&cluster.Spec.Rules[0].ResourceRule)
			test.check(t, validation.ValidateWatchRule(namespaced))
			test.check(t, validation.ValidateClusterWatchRule(cluster))
		})
	}
}

func TestClusterWatchRule(t *testing.T) {
	type rule = *configbutler.ClusterWatchRule
	checkChanges(t, clusterWatchRule, validation.ValidateClusterWatchRule, validation.ValidateClusterWatchRuleUpdate, []change[rule]{
		{name: "cluster-scoped objects", do: func(r rule) {
			r.Spec.Rules[0].Scope, r.Spec.Rules[0].NamespaceSelector = configbutler.ScopeCluster, nil
		}},
		{name: "every namespace", do: func(r rule) { r.Spec.Rules[0].NamespaceSelector = nil }},
		{
			name: "no destination", do: func(r rule) { r.Spec.DestinationRef.Name = "" },
			path: "spec.destinationRef.name", says: "Required",
		},
		{
			name: "no destination's namespace", do: func(r rule) { r.Spec.DestinationRef.Namespace = "" },
			path: "spec.destinationRef.namespace", says: "in which one",
		},
		{
			name: "no scope", do: func(r rule) { r.Spec.Rules[0].Scope, r.Spec.Rules[0].NamespaceSelector = "", nil },
			path: "spec.rules[0].scope", says: "must be Cluster or Namespaced",
		},
		{
			name: "an unknown scope", do: func(r rule) { r.Spec.Rules[0].Scope, r.Spec.Rules[0].NamespaceSelector = "*", nil },
			path: "spec.rules[0].scope", says: `"Cluster", "Namespaced"`,
		},
		{
			name: "namespaces of cluster-scoped objects", do: func(r rule) { r.Spec.Rules[0].Scope = configbutler.ScopeCluster },
			path: "spec.rules[0].namespaceSelector", says: "only be set when scope is Namespaced",
		},
		{
			name: "a selector that cannot be", do: func(r rule) { r.Spec.Rules[0].NamespaceSelector = selector(strings.Repeat("a", 64), "") },
			path: "spec.rules[0].namespaceSelector.matchLabels", says: "63",
		},
		{
			name: "no rules", do: func(r rule) { r.Spec.Rules = nil },
			path: "spec.rules", says: "at least one",
		},
		{
			name: "two rules of one name", do: func(r rule) { r.Spec.Rules = append(r.Spec.Rules, r.Spec.Rules[0]) },
			path: "spec.rules[1].name", says: "Duplicate",
		},
	})
}
