// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// typesWith returns the types of the cluster of world, and others.
func typesWith(others ...watch.Type) *watch.Snapshot {
	return watch.NewSnapshot(append([]watch.Type{
		{Resource: configMaps, Kind: "ConfigMap", Namespaced: true, Preferred: true, Watchable: true},
		{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
			Kind:     "Secret", Namespaced: true, Preferred: true, Watchable: true,
		},
		{Resource: namespaces, Kind: "Namespace", Preferred: true, Watchable: true},
	}, others...), nil)
}

// world returns a small set of matching objects; tests modify it.
func world() inputs {
	return inputs{
		repositories: []*v1alpha1.GitRepoConfig{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"},
			Spec:       v1alpha1.GitRepoConfigSpec{RepoURL: "https://git.example.com/shop.git", AllowedBranches: []string{"main", "env/*"}},
		}},
		destinations: []*v1alpha1.GitDestination{newTestDestination("shop", "main", "clusters/a")},
		rules: []*v1alpha1.WatchRule{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "config"},
			Spec: v1alpha1.WatchRuleSpec{
				DestinationRef: v1alpha1.ObjectReference{Name: "main"},
				Rules:          []v1alpha1.ResourceRule{{Name: "all", Resources: []string{"configmaps"}}},
			},
		}},
		types: typesWith(), policy: watch.DefaultPolicy(),
		uncertain: func(string) bool { return false },
		namespaces: func(name string) (watch.Namespace, bool) {
			return watch.Namespace{Name: name, Labels: labels.Set{"team": name}}, name != "unknown"
		},
	}
}

func newTestDestination(namespace, name, folder string) *v1alpha1.GitDestination {
	return &v1alpha1.GitDestination{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
		},
		Spec: v1alpha1.GitDestinationSpec{
			RepoRef: v1alpha1.ObjectReference{Name: "repo", Namespace: "shop"}, Branch: "main", BaseFolder: folder,
			Granularity: v1alpha1.GranularityPerAuthor, Secrets: v1alpha1.SecretsEncrypt, Prune: v1alpha1.PruneAlways,
		},
	}
}

func policy(mode v1alpha1.AccessMode, selector *metav1.LabelSelector) *v1alpha1.AccessPolicy {
	return &v1alpha1.AccessPolicy{NamespacedRules: v1alpha1.NamespacedRules{Mode: mode, NamespaceSelector: selector}}
}

// allowClusterRules has the first destination admit ClusterWatchRules.
func (in *inputs) allowClusterRules() {
	in.destinations[0].Spec.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: true}
	in.repositories[0].Spec.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: true}
}

func TestDestinationProblems(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*inputs)
		key    string
		reason string
		says   string
	}{
		{"in force", func(*inputs) {}, "shop/main", "", ""},
		{"no repository", func(in *inputs) { in.repositories = nil }, "shop/main", v1alpha1.ReasonRepositoryNotFound, "shop/repo"},
		{
			"branch not allowed", func(in *inputs) { in.destinations[0].Spec.Branch = "release" },
			"shop/main", v1alpha1.ReasonBranchNotAllowed, "main, env/*",
		},
		{"branch by glob", func(in *inputs) { in.destinations[0].Spec.Branch = "env/a" }, "shop/main", "", ""},
		{
			"glob within one segment", func(in *inputs) { in.destinations[0].Spec.Branch = "env/a/b" },
			"shop/main", v1alpha1.ReasonBranchNotAllowed, "",
		},
		{
			"no branch allowed", func(in *inputs) { in.repositories[0].Spec.AllowedBranches = nil },
			"shop/main", v1alpha1.ReasonBranchNotAllowed, "none",
		},
		{
			"another namespace", func(in *inputs) { in.destinations[0].Namespace = "dev" },
			"dev/main", v1alpha1.ReasonAccessNotGranted, "accessPolicy",
		},
		{"another namespace, admitted", func(in *inputs) {
			in.destinations[0].Namespace = "dev"
			in.repositories[0].Spec.AccessPolicy = policy(v1alpha1.AccessModeAllNamespaces, nil)
		}, "dev/main", "", ""},
		{"another namespace, selected", func(in *inputs) {
			in.destinations[0].Namespace = "dev"
			in.repositories[0].Spec.AccessPolicy = policy(v1alpha1.AccessModeFromSelector,
				&metav1.LabelSelector{MatchLabels: map[string]string{"team": "dev"}})
		}, "dev/main", "", ""},
		{"another namespace, not selected", func(in *inputs) {
			in.destinations[0].Namespace = "dev"
			in.repositories[0].Spec.AccessPolicy = policy(v1alpha1.AccessModeFromSelector,
				&metav1.LabelSelector{MatchLabels: map[string]string{"team": "ops"}})
		}, "dev/main", v1alpha1.ReasonAccessNotGranted, ""},
		{"folder inside an older one's", func(in *inputs) {
			inside := newTestDestination("shop", "inside", "clusters/a/b")
			inside.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
			in.destinations = append(in.destinations, inside)
		}, "shop/inside", v1alpha1.ReasonFolderOverlaps, "shop/main"},
		{"the older one keeps its folder", func(in *inputs) {
			around := newTestDestination("shop", "around", "")
			around.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
			in.destinations = append(in.destinations, around)
		}, "shop/main", "", ""},
		{
			"a folder of Git's", func(in *inputs) { in.destinations[0].Spec.BaseFolder = "clusters/.gitmodules" }, "shop/main",
			v1alpha1.ReasonFolderInvalid, `spec.baseFolder: base folder "clusters/.gitmodules" must not have the segment ".gitmodules"`,
		},
		{"the same folder on another branch", func(in *inputs) {
			other := newTestDestination("shop", "other", "clusters/a")
			other.Spec.Branch = "env/b"
			in.destinations = append(in.destinations, other)
		}, "shop/other", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := world()
			tc.change(&in)
			namespace, name, _ := strings.Cut(tc.key, "/")
			got := newPlan(in).destinations[types.NamespacedName{Namespace: namespace, Name: name}].problem
			if got.Code != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("problem = %+v, want reason %q with %q", got, tc.reason, tc.says)
			}
		})
	}
}

func TestOneRepositoryHasOneCanonicalURL(t *testing.T) {
	for _, tc := range []struct{ a, b string }{
		{"https://git.example.com/team/repo.git", "https://GIT.example.com:443//team/repo/"},
		{"ssh://git@git.example.com/team/repo", "ssh://other@git.example.com:22/team/repo.git"},
		{"git@git.example.com:team/repo.git", "git@git.example.com:team/repo/"},
	} {
		if canonicalURL(tc.a) != canonicalURL(tc.b) {
			t.Errorf("canonical URLs of %s and %s differ: %s, %s", tc.a, tc.b, canonicalURL(tc.a), canonicalURL(tc.b))
		}
	}
	for _, other := range []string{
		"https://git.example.com/team/Repo", "https://git.example.com:8443/team/repo", "http://git.example.com/team/repo",
	} {
		if canonicalURL(other) == canonicalURL("https://git.example.com/team/repo") {
			t.Errorf("%s has another canonical URL", other)
		}
	}
}

func TestRuleProblems(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*inputs)
		reason string
		says   string
		types  int
	}{
		{"in force", func(*inputs) {}, "", "", 1},
		{"no destination", func(in *inputs) { in.destinations = nil }, v1alpha1.ReasonDestinationNotFound, "shop/main", 1},
		{"destination not in force", func(in *inputs) { in.repositories = nil }, v1alpha1.ReasonDestinationNotReady, "shop/repo", 1},
		{"another namespace", func(in *inputs) {
			in.rules[0].Namespace = "dev"
			in.rules[0].Name = "config"
			in.rules[0].Spec.DestinationRef.Namespace = "shop"
		}, v1alpha1.ReasonAccessNotGranted, "namespace dev", 1},
		{
			"no such type", func(in *inputs) { in.rules[0].Spec.Rules[0].Resources = []string{"gadgets"} },
			v1alpha1.ReasonNoMatchingTypes, "gadgets", 0,
		},
		{"one of two types", func(in *inputs) {
			in.rules[0].Spec.Rules[0].Resources = []string{"configmaps", "gadgets"}
		}, v1alpha1.ReasonTypeNotFound, "gadgets", 1},
		{"a type without namespaces", func(in *inputs) {
			in.rules[0].Spec.Rules[0].Resources = []string{"namespaces"}
		}, v1alpha1.ReasonNoMatchingTypes, "namespaces", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := world()
			tc.change(&in)
			p := newPlan(in)
			rule := p.rules[nameOf(in.rules[0])]
			if got := rule.selectionProblem(); got.Code != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("problem = %+v, want reason %q with %q", got, tc.reason, tc.says)
			}
			if len(rule.types) != tc.types {
				t.Errorf("types = %v, want %d", rule.types, tc.types)
			}
		})
	}
}

// TestRulesNeedToBeAdmittedTwice checks that a rule is in force only if both its destination and the repository admit it, and that its
// reason names the one that does not.
func TestRulesNeedToBeAdmittedTwice(t *testing.T) {
	const repository = "GitRepoConfig shop/repo, the repository of GitDestination shop/main, does not admit "
	var (
		none    *v1alpha1.AccessPolicy
		cluster = &v1alpha1.AccessPolicy{AllowClusterRules: true}
		all     = policy(v1alpha1.AccessModeAllNamespaces, nil)
		dev     = policy(v1alpha1.AccessModeFromSelector, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "dev"}})
		ops     = policy(v1alpha1.AccessModeFromSelector, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ops"}})
	)
	for _, tc := range []struct {
		name                    string
		destination, repository *v1alpha1.AccessPolicy
		rule, clusterRule       string
	}{
		{
			"neither", none, none,
			"GitDestination shop/main does not admit WatchRules of namespace dev: its spec.accessPolicy.namespacedRules must allow that namespace",
			"GitDestination shop/main does not admit ClusterWatchRules: its spec.accessPolicy.allowClusterRules must be true",
		},
		{
			"the destination alone, rules of the cluster", cluster, all, "GitDestination shop/main does not admit WatchRules of namespace dev",
			repository + "ClusterWatchRules: its spec.accessPolicy.allowClusterRules must be true",
		},
		{
			"the destination alone, all namespaces", all, cluster,
			repository + "WatchRules of namespace dev: its spec.accessPolicy.namespacedRules must allow that namespace",
			"GitDestination shop/main does not admit ClusterWatchRules",
		},
		{"both, rules of the cluster", cluster, cluster, "GitDestination shop/main does not admit", ""},
		{"both, all namespaces", all, all, "", "GitDestination shop/main does not admit"},
		{"both, by labels", dev, dev, "", "GitDestination shop/main does not admit"},
		{"both, by other labels", dev, ops, repository + "WatchRules of namespace dev", "GitDestination shop/main does not admit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := world()
			in.rules[0].Namespace, in.rules[0].Spec.DestinationRef.Namespace = "dev", "shop"
			in.clusterRules = []*v1alpha1.ClusterWatchRule{{
				ObjectMeta: metav1.ObjectMeta{Name: "all"},
				Spec: v1alpha1.ClusterWatchRuleSpec{
					DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "shop", Name: "main"},
					Rules: []v1alpha1.ClusterResourceRule{{
						ResourceRule: v1alpha1.ResourceRule{Resources: []string{"namespaces"}}, Scope: v1alpha1.ScopeCluster,
					}},
				},
			}}
			in.destinations[0].Spec.AccessPolicy, in.repositories[0].Spec.AccessPolicy = tc.destination, tc.repository
			p := newPlan(in)
			d := p.destinations[types.NamespacedName{Namespace: "shop", Name: "main"}]
			for _, rule := range []struct {
				plan     *rulePlan
				says     string
				selected operations
			}{
				{
					p.rules[types.NamespacedName{Namespace: "dev", Name: "config"}],
					tc.rule, d.selection.operations(configMaps, "dev", nil, in.namespaces),
				},
				{p.clusterRules["all"], tc.clusterRule, d.selection.operations(namespaces, "", nil, in.namespaces)},
			} {
				reason, operations := v1alpha1.ReasonAccessNotGranted, operations(0)
				if rule.says == "" {
					reason, operations = "", opAll
				}
				if got := rule.plan.problem; got.Code != reason || !strings.Contains(got.Message, rule.says) {
					t.Errorf("problem = %+v, want reason %q with %q", got, reason, rule.says)
				}
				if rule.selected != operations {
					t.Errorf("selected operations = %b, want %b", rule.selected, operations)
				}
			}
			if refused := tc.rule != "" || tc.clusterRule != ""; d.held != refused {
				t.Errorf("held = %t: the destination may remove files that only a rejected rule selects", d.held)
			}
		})
	}
}

// A plan has a selector for each set of operations of a rule, however many items have that set.
func TestItemsOfARuleShareSelectors(t *testing.T) {
	in := world()
	items := slices.Repeat([]v1alpha1.ResourceRule{{Resources: []string{"configmaps"}}, {Resources: []string{"secrets"}}}, 50)
	in.rules[0].Spec.Rules = slices.Concat(items, []v1alpha1.ResourceRule{
		{Operations: []v1alpha1.Operation{v1alpha1.OperationCreate}, Resources: []string{"configmaps"}},
		{Operations: []v1alpha1.Operation{v1alpha1.OperationAll}, Resources: []string{"secrets"}},
	})
	p := newPlan(in)
	got := p.destinations[nameOf(in.destinations[0])].selection
	if len(got) != 2 || got[0].operations != opCreate || len(got[0].types) != 1 || got[1].operations != opAll || len(got[1].types) != 2 {
		t.Errorf("selectors = %+v, want one to create ConfigMaps, and one of both types", got)
	}
	if rule := p.rules[nameOf(in.rules[0])]; len(rule.types) != 2 || cap(rule.types) > 4 {
		t.Errorf("the rule has %d types in an array of %d, want 2", len(rule.types), cap(rule.types))
	}
}

func TestSelection(t *testing.T) {
	lookup := world().namespaces
	s := selection{
		{types: typeSet(configMaps), namespace: "shop", objects: mustSelector(t, "tier=web"), operations: opCreate | opUpdate},
		{types: typeSet(configMaps), namespaces: mustSelector(t, "team=dev"), objects: labels.Everything(), operations: opAll},
	}
	for _, tc := range []struct {
		namespace string
		labels    labels.Set
		want      operations
		removable bool
	}{
		{"shop", labels.Set{"tier": "web"}, opCreate | opUpdate, false},
		{"shop", labels.Set{"tier": "db"}, 0, false},
		{"dev", nil, opAll, true},
		{"other", labels.Set{"tier": "web"}, 0, true},   // no rule selects it any more
		{"unknown", labels.Set{"tier": "web"}, 0, true}, // the namespace was deleted
	} {
		if got := s.operations(configMaps, tc.namespace, tc.labels, lookup); got != tc.want {
			t.Errorf("%s %v: operations = %b, want %b", tc.namespace, tc.labels, got, tc.want)
		}
		if got := s.removable(configMaps, tc.namespace, lookup); got != tc.removable {
			t.Errorf("%s: removable = %t, want %t", tc.namespace, got, tc.removable)
		}
	}
	if got := s.watches(configMaps); len(got) != 1 || got[0].Namespace != "" {
		t.Errorf("watches = %v, want one of all namespaces", got)
	}
	if got := s[:1].watches(configMaps); len(got) != 1 || got[0].Namespace != "shop" {
		t.Errorf("watches = %v, want one of shop", got)
	}
	if s.fingerprint(configMaps) == s[:1].fingerprint(configMaps) ||
		s.fingerprint(configMaps) != (selection{s[1], s[0]}).fingerprint(configMaps) {
		t.Error("fingerprints are the same for different selections, or depend on their order")
	}
}

func typeSet(resources ...schema.GroupVersionResource) map[schema.GroupVersionResource]watch.Type {
	set := map[schema.GroupVersionResource]watch.Type{}
	for _, r := range resources {
		set[r] = watch.Type{Resource: r, Namespaced: true}
	}
	return set
}

func mustSelector(t *testing.T, text string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}
