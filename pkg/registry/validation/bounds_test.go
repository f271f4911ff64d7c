// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// What is looked for in each object, and done for each Secret, has a bound.
func TestBoundsOfGitDestination(t *testing.T) {
	rule := configbutler.IgnoreRule{Fields: []string{"/spec/replicas"}}
	names := func(fields, managers int) configbutler.IgnoreRule {
		return configbutler.IgnoreRule{Fields: slices.Repeat([]string{"/spec/a"}, fields), Managers: slices.Repeat([]string{"a"}, managers)}
	}
	type dest = *configbutler.GitDestination
	checkChanges(t, destination, validation.ValidateGitDestination, validation.ValidateGitDestinationUpdate, []change[dest]{
		{name: "as many rules as there may be", do: func(d dest) { d.Spec.Ignore = slices.Repeat([]configbutler.IgnoreRule{rule}, 100) }},
		{
			name: "more rules", do: func(d dest) { d.Spec.Ignore = slices.Repeat([]configbutler.IgnoreRule{rule}, 101) },
			path: "spec.ignore", says: "101: must have at most 100 items",
		},
		{name: "as many names as there may be", do: func(d dest) { d.Spec.Ignore = []configbutler.IgnoreRule{names(300, 200), names(300, 200)} }},
		{
			name: "more names", do: func(d dest) { d.Spec.Ignore = []configbutler.IgnoreRule{names(300, 200), names(300, 201)} },
			path: "spec.ignore", says: "name 1001 fields and managers in all, and may name at most 1000",
		},
		{
			name: "longer fields", do: func(d dest) {
				d.Spec.Ignore = []configbutler.IgnoreRule{{Fields: []string{strings.Repeat("/a", 1<<15), "/b"}}}
			},
			path: "spec.ignore", says: "have 65538 bytes in all, and may have at most 65536",
		},
		{
			name: "as large a selector as there may be", do: func(d dest) { d.Spec.AccessPolicy = selected(498) },
		},
		{
			name: "a larger selector", do: func(d dest) { d.Spec.AccessPolicy = selected(499) },
			path: "spec.accessPolicy.namespacedRules.namespaceSelector", says: "has 501 labels, expressions and values, and may have at most 500",
		},
		{
			name: "more recipients than there may be",
			do:   func(d dest) { d.Spec.Encryption.AgeRecipients = slices.Repeat([]string{recipient}, 101) },
			path: "spec.encryption.ageRecipients", says: "101: must have at most 100 items",
		},
	})
}

// selected admits namespaces by one label, and by one expression with many values.
func selected(values int) *configbutler.AccessPolicy {
	by := selector("a", "b")
	by.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "b", Operator: metav1.LabelSelectorOpIn, Values: numbered("v", values)}}
	return &configbutler.AccessPolicy{NamespacedRules: configbutler.NamespacedRules{
		Mode: configbutler.AccessModeFromSelector, NamespaceSelector: by,
	}}
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return names
}

// ruleBounds are rules as large as they may be, and larger ones.
var ruleBounds = []struct {
	name  string
	rules []configbutler.ResourceRule
	// path and says are of the error, empty if the rules are valid.
	path, says string
}{
	{name: "as many rules as there may be", rules: make([]configbutler.ResourceRule, 100)},
	{name: "more rules", rules: make([]configbutler.ResourceRule, 101), path: "spec.rules", says: "101: must have at most 100 items"},
	{name: "as many resources as there may be", rules: []configbutler.ResourceRule{{Resources: numbered("r", 500)}}},
	{
		name: "more resources", rules: []configbutler.ResourceRule{{Resources: numbered("r", 501)}},
		path: "spec.rules[0].resources", says: "501: must have at most 500 items",
	},
	{
		name: "more groups", rules: []configbutler.ResourceRule{{APIGroups: numbered("g", 501)}},
		path: "spec.rules[0].apiGroups", says: "501: must have at most 500 items",
	},
	{
		name: "more versions", rules: []configbutler.ResourceRule{{APIVersions: numbered("v", 501)}},
		path: "spec.rules[0].apiVersions", says: "501: must have at most 500 items",
	},
	{
		name:  "more operations",
		rules: []configbutler.ResourceRule{{Operations: make([]configbutler.Operation, 501)}},
		path:  "spec.rules[0].operations", says: "501: must have at most 500 items",
	},
	{
		name: "as many entries as there may be",
		rules: []configbutler.ResourceRule{
			{Resources: numbered("r", 400), APIVersions: numbered("v", 200)}, {Resources: numbered("r", 400)},
		},
	},
	{
		name: "more entries",
		rules: []configbutler.ResourceRule{
			{Resources: numbered("r", 400), APIVersions: numbered("v", 200)}, {Resources: numbered("r", 401)},
		},
		path: "spec.rules", says: "have 1001 operations, groups, versions and resources in all, and may have at most 1000",
	},
	{
		name: "as many types as there may be",
		rules: []configbutler.ResourceRule{
			{APIGroups: numbered("g", 3), Resources: numbered("r", 300)}, {APIGroups: numbered("g", 99)}, {},
		},
	},
	{
		name: "more types",
		rules: []configbutler.ResourceRule{
			{APIGroups: numbered("g", 3), Resources: numbered("r", 300)}, {APIGroups: numbered("g", 100)}, {},
		},
		path: "spec.rules", says: "name 1001 types in all, each group with each resource of a rule, and may name at most 1000",
	},
	{
		name: "a list as long as a request can make it", rules: []configbutler.ResourceRule{{Resources: numbered("r", 300_000)}},
		path: "spec.rules", says: "have 300000 operations, groups, versions and resources in all",
	},
}

func TestBoundsOfRules(t *testing.T) {
	for _, test := range ruleBounds {
		t.Run(test.name, func(t *testing.T) {
			rule, wide := watchRule(), clusterWatchRule()
			rule.Spec.Rules, wide.Spec.Rules = test.rules, nil
			for _, each := range test.rules {
				wide.Spec.Rules = append(wide.Spec.Rules, configbutler.ClusterResourceRule{
					ResourceRule: each, Scope: configbutler.ScopeCluster,
				})
			}
			for kind, errs := range map[string]field.ErrorList{
				"WatchRule": validation.ValidateWatchRule(rule), "ClusterWatchRule": validation.ValidateClusterWatchRule(wide),
				"changed WatchRule":        validation.ValidateWatchRuleUpdate(rule, watchRule()),
				"changed ClusterWatchRule": validation.ValidateClusterWatchRuleUpdate(wide, clusterWatchRule()),
			} {
				// The entries of operations are invalid too.
				if test.says == "" && len(errs) > 0 || test.says != "" &&
					(len(errs) != 1 || errs[0].Field != test.path || !strings.Contains(errs[0].Error(), test.says)) {
					t.Errorf("%s: %d errors, want one of %q: %.1000v", kind, len(errs), test.says, errs)
				}
			}
		})
	}
}

func TestBoundsOfGitRepoConfig(t *testing.T) {
	type repo = *configbutler.GitRepoConfig
	create := func(r repo) field.ErrorList { return validation.ValidateGitRepoConfig(r, validation.Options{}) }
	update := func(r, old repo) field.ErrorList {
		return validation.ValidateGitRepoConfigUpdate(r, old, validation.Options{})
	}
	committer := func(bytes int) *configbutler.CommitPolicy {
		return &configbutler.CommitPolicy{Committer: &configbutler.CommitIdentity{Name: strings.Repeat("a", bytes), Email: "a@b"}}
	}
	checkChanges(t, repository, create, update, []change[repo]{
		{name: "as many branches as there may be", do: func(r repo) { r.Spec.AllowedBranches = numbered("b", 500) }},
		{
			name: "more branches", do: func(r repo) { r.Spec.AllowedBranches = numbered("b", 501) },
			path: "spec.allowedBranches", says: "501: must have at most 500 items",
		},
		{name: "as long a name as there may be", do: func(r repo) { r.Spec.Commit = committer(256) }},
		{
			name: "a longer name", do: func(r repo) { r.Spec.Commit = committer(257) },
			path: "spec.commit.committer.name", says: "256",
		},
	})
}

func TestBoundsOfPatches(t *testing.T) {
	catalog := appCatalog()
	catalog.Spec.Patches = []configbutler.Patch{{
		Target: configbutler.PatchTarget{Kind: "Deployment", LabelSelector: selected(499).NamespacedRules.NamespaceSelector},
		Type:   configbutler.PatchMerge, Patch: "{}",
	}}
	errs := validation.ValidateAppCatalog(catalog)
	if len(errs) != 1 || errs[0].Field != "spec.patches[0].target.labelSelector" {
		t.Errorf("errors = %v, want one of the selector", errs)
	}
}

func TestBoundsOfConflictResolution(t *testing.T) {
	request := &configbutler.ConflictResolution{ObjectMeta: meta("dev"), Spec: configbutler.ConflictResolutionSpec{
		Keep: []configbutler.ConflictChoice{{Kind: configbutler.WorkloadDeployment, Name: "web", Fields: numbered("/spec/f", 101)}},
	}}
	errs := validation.ValidateConflictResolution(request, "dev", nil)
	if len(errs) != 1 || errs[0].Field != "spec.keep[0].fields" || !strings.Contains(errs[0].Error(), "at most 100 items") {
		t.Errorf("errors = %v, want one of the number of fields", errs)
	}
}
