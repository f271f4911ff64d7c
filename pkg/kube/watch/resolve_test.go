// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit"
)

// realSnapshot is what a real kube-apiserver serves, and the kinds of this server.
func realSnapshot(t *testing.T, edits ...func(*apidiscovery.APIGroupDiscoveryList)) *watch.Snapshot {
	t.Helper()
	f := runCatalogue(t)
	f.server.edit(withGroup("configbutler.ai", "v1alpha1", "gitdestinations", "gitdestinationstatuses", "syncstatuses"))
	for _, change := range edits {
		f.server.edit(change)
	}
	f.discoverAgain(t)
	testkit.EventuallyTrue(t, "the kinds of this server", func() bool {
		return f.has(schema.GroupVersionResource{Group: "configbutler.ai", Version: "v1alpha1", Resource: "gitdestinations"})
	})
	return f.Snapshot()
}

func describe(types []watch.Type) []string {
	names := make([]string, 0, len(types))
	for _, t := range types {
		names = append(names, t.Resource.GroupResource().String()+"/"+t.Resource.Version)
	}
	return names
}

func TestResolve(t *testing.T) {
	snapshot := realSnapshot(t)
	for name, test := range map[string]struct {
		selection watch.Selection
		types     []string
		unmatched []string
	}{
		"an exact plural in one group": {
			selection: watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
			types:     []string{"deployments.apps/v1"},
		},
		"core is the empty group": {
			selection: watch.Selection{APIGroups: []string{""}, Resources: []string{"configmaps", "deployments"}},
			types:     []string{"configmaps/v1"},
			unmatched: []string{"deployments: no such resource type in these groups; did you mean deployments.apps?"},
		},
		"no groups are all groups": {
			selection: watch.Selection{Resources: []string{"deployments", "configmaps"}},
			types:     []string{"configmaps/v1", "deployments.apps/v1"},
		},
		"a wildcard among the groups": {
			selection: watch.Selection{APIGroups: []string{"apps", "*"}, Resources: []string{"configmaps"}},
			types:     []string{"configmaps/v1"},
		},
		"the preferred version": {
			selection: watch.Selection{Resources: []string{"horizontalpodautoscalers", "widgets"}},
			types:     []string{"horizontalpodautoscalers.autoscaling/v2", "widgets.example.com/v1"},
		},
		"a resource that the group's preferred version lacks": {
			selection: watch.Selection{Resources: []string{"gadgets"}},
			types:     []string{"gadgets.example.com/v1beta1"},
		},
		"a version by name": {
			selection: watch.Selection{APIVersions: []string{"v1beta1"}, Resources: []string{"widgets"}},
			types:     []string{"widgets.example.com/v1beta1"},
		},
		"two versions by name": {
			selection: watch.Selection{APIVersions: []string{"v1", "v1beta1"}, Resources: []string{"widgets"}},
			types:     []string{"widgets.example.com/v1", "widgets.example.com/v1beta1"},
		},
		"any version is the preferred one": {
			selection: watch.Selection{APIVersions: []string{"*"}, Resources: []string{"widgets"}},
			types:     []string{"widgets.example.com/v1"},
		},
		"a version that is not served": {
			selection: watch.Selection{APIVersions: []string{"v2"}, Resources: []string{"widgets"}},
			unmatched: []string{"widgets: it is not served in these versions"},
		},
		"the short form names its group": {
			selection: watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"ingresses.networking.k8s.io"}},
			types:     []string{"ingresses.networking.k8s.io/v1"},
		},
		"all of one group": {
			selection: watch.Selection{APIGroups: []string{"example.com"}, Resources: []string{"*"}},
			types:     []string{"gadgets.example.com/v1beta1", "widgets.example.com/v1"},
		},
		"all of one group in the short form": {
			selection: watch.Selection{Resources: []string{"*.example.com"}},
			types:     []string{"gadgets.example.com/v1beta1", "widgets.example.com/v1"},
		},
		"all leaves the exclusions out": {
			selection: watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"*"}},
			types:     []string{"daemonsets.apps/v1", "deployments.apps/v1", "replicasets.apps/v1", "statefulsets.apps/v1"},
		},
		"all of a group that is left out": {
			selection: watch.Selection{APIGroups: []string{"batch"}, Resources: []string{"*"}},
			unmatched: []string{"*: every type in these groups is excluded by default; name resources to select them"},
		},
		"an exact name wins over the exclusions": {
			selection: watch.Selection{Resources: []string{"*.apps", "jobs", "pods"}},
			types: []string{
				"pods/v1", "daemonsets.apps/v1", "deployments.apps/v1", "replicasets.apps/v1", "statefulsets.apps/v1", "jobs.batch/v1",
			},
		},
		"a subresource": {
			selection: watch.Selection{Resources: []string{"pods/log", "deployments/scale", "*/status"}},
			unmatched: []string{
				"pods/log: a subresource has no objects of its own",
				"deployments/scale: a subresource has no objects of its own",
				"*/status: a subresource has no objects of its own",
			},
		},
		"a resource with all its subresources": {
			selection: watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"deployments/*"}},
			types:     []string{"deployments.apps/v1"},
		},
		"a kind": {
			selection: watch.Selection{Resources: []string{"ConfigMap"}},
			unmatched: []string{"ConfigMap: no such resource type; did you mean configmaps?"},
		},
		"the kind of a subresource": {
			selection: watch.Selection{Resources: []string{"Scale"}},
			unmatched: []string{"Scale: no such resource type"},
		},
		"a type that does not exist": {
			selection: watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"flying"}},
			unmatched: []string{"flying: no such resource type"},
		},
		"a type that cannot be watched": {
			selection: watch.Selection{Resources: []string{"tokenreviews", "componentstatuses"}},
			unmatched: []string{
				"tokenreviews: it cannot be listed and watched",
				"componentstatuses: it cannot be listed and watched",
			},
		},
		"the other scope": {
			selection: watch.Selection{Resources: []string{"clusterroles", "roles"}, Scope: watch.NamespacedScope},
			types:     []string{"roles.rbac.authorization.k8s.io/v1"},
			unmatched: []string{"clusterroles: it is of the other scope"},
		},
		"cluster scope": {
			selection: watch.Selection{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"*"}, Scope: watch.ClusterScope},
			types:     []string{"clusterrolebindings.rbac.authorization.k8s.io/v1", "clusterroles.rbac.authorization.k8s.io/v1"},
		},
		"objects that two groups show": {
			selection: watch.Selection{Resources: []string{"events"}},
			types:     []string{"events/v1"},
		},
		"objects that two groups show, the other group named": {
			selection: watch.Selection{Resources: []string{"events.events.k8s.io"}},
			types:     []string{"events.events.k8s.io/v1"},
		},
		"objects that two groups show, only the other group selected": {
			selection: watch.Selection{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}},
			types:     []string{"events.events.k8s.io/v1"},
		},
		"the kinds of this server by wildcard": {
			selection: watch.Selection{APIGroups: []string{"configbutler.ai"}, Resources: []string{"*"}},
			types:     []string{"gitdestinations.configbutler.ai/v1alpha1"},
		},
		"a record of this server by name": {
			selection: watch.Selection{Resources: []string{"syncstatuses.configbutler.ai"}},
			types:     []string{"syncstatuses.configbutler.ai/v1alpha1"},
		},
		"a record that every commit changes": {
			selection: watch.Selection{Resources: []string{"gitdestinationstatuses"}},
			unmatched: []string{"gitdestinationstatuses: every commit changes it, so a commit of it would cause another"},
		},
		"the preset in two groups": {
			selection: watch.Selection{APIGroups: []string{"apps", "policy"}},
			types:     []string{"daemonsets.apps/v1", "deployments.apps/v1", "statefulsets.apps/v1", "poddisruptionbudgets.policy/v1"},
		},
		"the preset in a group of which it has nothing": {
			selection: watch.Selection{APIGroups: []string{"example.com"}},
			unmatched: []string{"the default resources: none of them is in these groups, versions and scope; name resources to select others"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			types, unmatched := snapshot.Resolve(test.selection, watch.DefaultPolicy())
			if diff := cmp.Diff(test.types, describe(types), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
			var lines []string
			for _, u := range unmatched {
				lines = append(lines, u.String())
			}
			if diff := cmp.Diff(test.unmatched, lines, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unmatched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveDefaults(t *testing.T) {
	snapshot := realSnapshot(t, withGroup("gateway.networking.k8s.io", "v1", gatewayTypes...))

	preset, unmatched := snapshot.Resolve(watch.Selection{}, watch.DefaultPolicy())
	if len(unmatched) > 0 || len(preset) != len(watch.DefaultPolicy().Default) {
		t.Errorf("preset: got %v, unmatched %v, want all of %v", describe(preset), unmatched, watch.DefaultPolicy().Default)
	}

	everything := watch.DefaultPolicy()
	everything.Default = nil
	all, _ := snapshot.Resolve(watch.Selection{}, everything)
	wildcard, _ := snapshot.Resolve(watch.Selection{Resources: []string{"*"}}, watch.DefaultPolicy())
	if diff := cmp.Diff(describe(wildcard), describe(all)); diff != "" {
		t.Errorf("watching all is not the same as `*` (-wildcard +all):\n%s", diff)
	}
	for _, present := range []string{"gadgets.example.com/v1beta1", "namespaces/v1", "replicasets.apps/v1"} {
		if !slices.Contains(describe(all), present) {
			t.Errorf("all: %s is missing", present)
		}
	}
	for _, excluded := range watch.DefaultPolicy().Exclude {
		if slices.ContainsFunc(all, func(t watch.Type) bool { return t.Resource.GroupResource() == excluded }) {
			t.Errorf("all: %s is not excluded", excluded)
		}
	}
	seen := map[schema.GroupResource]bool{}
	for _, each := range all {
		if !each.Watchable || seen[each.Resource.GroupResource()] {
			t.Errorf("all: %v cannot be watched or is listed twice", each)
		}
		seen[each.Resource.GroupResource()] = true
	}
}

// gatewayTypes are those of the Gateway API that the preset has.
var gatewayTypes = []string{"gateways", "grpcroutes", "httproutes", "referencegrants"}

// The Gateway API is in the preset of the clusters that have it, and nothing is missing in others.
func TestResolvePresetWithGatewayAPI(t *testing.T) {
	isGateway := func(name string) bool { return strings.Contains(name, ".gateway.networking.k8s.io/") }
	selection := watch.Selection{Scope: watch.NamespacedScope}
	without, unmatched := realSnapshot(t).Resolve(selection, watch.DefaultPolicy())
	if len(without) == 0 || slices.ContainsFunc(describe(without), isGateway) || len(unmatched) > 0 {
		t.Errorf("without the Gateway API: got %v, unmatched %v", describe(without), unmatched)
	}
	snapshot := realSnapshot(t, withGroup("gateway.networking.k8s.io", "v1", append(gatewayTypes, "backendtlspolicies")...))
	with, _ := snapshot.Resolve(selection, watch.DefaultPolicy())
	got := slices.DeleteFunc(describe(with), func(name string) bool { return !isGateway(name) })
	want := make([]string, 0, len(gatewayTypes))
	for _, resource := range gatewayTypes {
		want = append(want, resource+".gateway.networking.k8s.io/v1")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with the Gateway API (-want +got):\n%s", diff)
	}
}

func TestResolveHonoursFurtherExclusions(t *testing.T) {
	snapshot := realSnapshot(t)
	policy := watch.DefaultPolicy()
	policy.Exclude = append(policy.Exclude, schema.GroupResource{Resource: "secrets"})
	for _, selection := range []watch.Selection{{}, {Resources: []string{"*"}}} {
		if types, _ := snapshot.Resolve(selection, policy); slices.Contains(describe(types), "secrets/v1") {
			t.Errorf("%+v selects secrets", selection)
		}
	}
	if types, _ := snapshot.Resolve(watch.Selection{Resources: []string{"secrets"}}, policy); len(types) != 1 {
		t.Errorf("secrets by name: got %v", describe(types))
	}
}

func TestResolveIsUncertainWhileDiscoveryFails(t *testing.T) {
	snapshot := realSnapshot(t)
	for _, test := range []struct {
		selection watch.Selection
		uncertain bool
	}{
		{watch.Selection{Resources: []string{"nodes.metrics.k8s.io"}}, true},
		{watch.Selection{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}}, true},
		{watch.Selection{Resources: []string{"anything"}}, true},
		{watch.Selection{APIGroups: []string{"apps"}, Resources: []string{"anything"}}, false},
		{watch.Selection{Resources: []string{"anything.apps"}}, false},
	} {
		types, unmatched := snapshot.Resolve(test.selection, watch.DefaultPolicy())
		if len(types) != 0 || len(unmatched) != 1 || unmatched[0].Uncertain != test.uncertain {
			t.Errorf("%+v: got %v, %+v, want uncertain %v", test.selection, describe(types), unmatched, test.uncertain)
		}
	}
}

func TestUnmatchedReadsAsASentence(t *testing.T) {
	_, unmatched := realSnapshot(t).Resolve(watch.Selection{Resources: []string{"deployment"}}, watch.DefaultPolicy())
	if got, want := unmatched[0].String(), "deployment: no such resource type; did you mean deployments?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if strings.Contains(unmatched[0].Reason, "deployment:") {
		t.Error("the reason repeats the resource")
	}
}
