// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// named is an object of the namespace teams, created so many seconds after noon; -1: not yet.
func named(name string, second int) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID(name)}
	if second >= 0 {
		meta.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(second) * time.Second))
	}
	return meta
}

type envt = *v1alpha1.Environment

// environment is one of the catalog shop.
func environment(name, target string, second int, changes ...func(envt)) envt {
	e := &v1alpha1.Environment{ObjectMeta: named(name, second), Spec: v1alpha1.EnvironmentSpec{
		CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: target, Type: v1alpha1.EnvironmentShared,
	}}
	for _, change := range changes {
		change(e)
	}
	return e
}

// of makes an environment a Branch that lives in a base, if that has a name.
func of(base string, workloads ...string) func(envt) {
	return func(e envt) {
		e.Spec.Type = v1alpha1.EnvironmentBranch
		if base != "" {
			e.Spec.BaseEnvironmentRef = &v1alpha1.EnvironmentReference{Name: base}
		}
		for _, name := range workloads {
			e.Spec.BranchWorkloads = append(e.Spec.BranchWorkloads, v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadDeployment, Name: name})
		}
	}
}

func from(namespace, catalog string) func(envt) {
	return func(e envt) { e.Spec.CatalogRef = v1alpha1.ObjectReference{Namespace: namespace, Name: catalog} }
}

func in(namespace string) func(envt) { return func(e envt) { e.Namespace = namespace } }

func deleting(e envt) { e.DeletionTimestamp = &metav1.Time{Time: noon} }

func catalog(name, source string, second int, policy *v1alpha1.CatalogAccessPolicy) *v1alpha1.AppCatalog {
	return &v1alpha1.AppCatalog{
		ObjectMeta: named(name, second), Spec: v1alpha1.AppCatalogSpec{SourceNamespace: source, AccessPolicy: policy},
	}
}

// cluster has the catalog shop of production, the Shared environment base, its Branch bob, and a Branch that lives alone.
func cluster(more ...envt) *placement.Cluster {
	labelled := func(selector map[string]string) *v1alpha1.CatalogAccessPolicy {
		return &v1alpha1.CatalogAccessPolicy{NamespacedRules: v1alpha1.NamespacedRules{
			Mode: v1alpha1.AccessModeFromSelector, NamespaceSelector: &metav1.LabelSelector{MatchLabels: selector},
		}}
	}
	return &placement.Cluster{
		Own: "slipstream-system",
		Environments: append([]envt{
			environment("base", "dev", 10), environment("bob", "dev", 11, of("base", "api")), environment("lone", "lone", 12, of("", "web")),
		}, more...),
		Catalogs: []*v1alpha1.AppCatalog{
			catalog("shop", "production", 0, nil), catalog("late", "dev", 20, labelled(map[string]string{"team": "shop"})),
		},
		Labels: func(namespace string) (labels.Set, bool) { return labels.Set{"team": "shop"}, namespace == "customers" },
	}
}

func TestCheck(t *testing.T) {
	const (
		target = "spec.targetNamespace "
		base   = "spec.baseEnvironmentRef.name "
	)
	for _, test := range []struct {
		name   string
		e      envt
		beside []envt
		reason string
		want   []string
	}{
		{name: "alone", e: environment("alice", "alice", -1)},
		{name: "in its own namespace", e: environment("alice", "teams", -1)},
		{name: "of a catalog that does not exist", e: environment("alice", "alice", -1, from("", "nowhere"))},
		{name: "the environment exists itself", e: environment("base", "dev", 10)},
		{
			name: "the server's namespace", e: environment("alice", "slipstream-system", -1), reason: v1alpha1.ReasonTargetTaken,
			want: []string{target + "must not be the namespace of this server"},
		},
		{
			name: "a source", e: environment("alice", "production", -1), reason: v1alpha1.ReasonTargetIsSource,
			want: []string{target + "must not be the source of a catalog: AppCatalog teams/shop follows it"},
		},
		{name: "a source that came later", e: environment("base", "dev", 10)},
		{
			name: "a source of the same second", e: environment("aaa", "production", 0), reason: v1alpha1.ReasonTargetIsSource,
			want: []string{target + "must not be the source of a catalog: AppCatalog teams/shop follows it"},
		},
		{
			name: "another's target", e: environment("alice", "lone", -1), reason: v1alpha1.ReasonTargetTaken,
			want: []string{target + "must not be the target of another environment: Environment teams/lone has it"},
		},
		{
			name: "another's target, from another namespace", e: environment("lone", "lone", 30, in("others"), from("others", "theirs")),
			reason: v1alpha1.ReasonTargetTaken,
			want:   []string{target + "must not be the target of another environment: Environment teams/lone has it"},
		},
		{
			name: "a target that is being cleared", e: environment("alice", "going", -1),
			beside: []envt{environment("gone", "going", 1, deleting)}, reason: v1alpha1.ReasonTargetTaken,
			want: []string{target + "must not be the target of another environment: Environment teams/gone has it until it has been deleted"},
		},
		{name: "at once, the older", e: environment("alice", "at-once", 40), beside: []envt{environment("carol", "at-once", 41)}},
		{name: "at once, of the same second", e: environment("alice", "at-once", 40), beside: []envt{environment("carol", "at-once", 40)}},
		{
			name: "at once, the younger", e: environment("carol", "at-once", 40), beside: []envt{environment("alice", "at-once", 40)},
			reason: v1alpha1.ReasonTargetTaken,
			want:   []string{target + "must not be the target of another environment: Environment teams/alice has it"},
		},
		{name: "a branch", e: environment("alice", "dev", 5, of("base", "web"))},
		{name: "the base of branches", e: environment("base", "dev", 10)},
		{name: "a base that was recreated", e: environment("base", "dev", 15)},
		{
			name: "a branch of nothing", e: environment("alice", "alice", -1, of("nobody", "web")), reason: v1alpha1.ReasonBaseNotFound,
			want: []string{base + "must be an Environment in the namespace teams: there is none of the name"},
		},
		{
			name:   "a branch of a base in another namespace",
			e:      environment("alice", "alice", -1, in("others"), from("others", "theirs"), of("base", "web")),
			reason: v1alpha1.ReasonBaseNotFound,
			want:   []string{base + "must be an Environment in the namespace others: there is none of the name"},
		},
		{
			name: "a branch of a branch", e: environment("alice", "lone", 5, of("lone", "web")), reason: v1alpha1.ReasonBaseNotFound,
			want: []string{base + "must be an Environment of the type Shared: lone is a Branch"},
		},
		{
			name: "a branch of what goes", e: environment("alice", "going", 5, of("gone", "web")),
			beside: []envt{environment("gone", "going", 1, deleting)}, reason: v1alpha1.ReasonBaseNotFound,
			want: []string{base + "must be an Environment that stays: gone is being deleted"},
		},
		{
			name: "a branch of another catalog", e: environment("alice", "dev", 5, from("", "nowhere"), of("base", "web")),
			reason: v1alpha1.ReasonBaseNotFound,
			want:   []string{"spec.catalogRef must be that of the base: Environment base is built from AppCatalog teams/shop"},
		},
		{name: "a branch of the same catalog, spelt out", e: environment("alice", "dev", 5, from("teams", "shop"), of("base", "web"))},
		{
			name: "a branch in another namespace", e: environment("alice", "alice", -1, of("base", "web")), reason: v1alpha1.ReasonBaseNotFound,
			want: []string{"spec.targetNamespace must be that of the base: Environment base is in dev"},
		},
		{
			name: "a workload of another branch", e: environment("alice", "dev", 15, of("base", "web", "api")), reason: v1alpha1.ReasonTargetTaken,
			want: []string{"spec.branchWorkloads[1] must not be in another Branch of the same base: Environment bob has it"},
		},
		{name: "a workload that another branch took later", e: environment("alice", "dev", 5, of("base", "web", "api"))},
		{name: "a workload of a branch in another namespace", e: environment("alice", "alice", 15, of("", "web", "api"))},
		{
			name: "a catalog that admits its own namespace", e: environment("alice", "alice", -1, in("others"), from("teams", "shop")),
			reason: v1alpha1.ReasonAccessNotGranted,
			want: []string{"spec.catalogRef must be a catalog that admits Environments of the namespace others: " +
				"AppCatalog teams/shop does not; its spec.accessPolicy can"},
		},
		{name: "a catalog that admits by label", e: environment("alice", "alice", -1, in("customers"), from("teams", "late"))},
		{
			name: "everything at once", e: environment("alice", "production", 30, in("others"), from("teams", "late"), of("nobody", "web")),
			reason: v1alpha1.ReasonTargetIsSource,
			want: []string{
				target + "must not be the source of a catalog: AppCatalog teams/shop follows it",
				base + "must be an Environment in the namespace others: there is none of the name",
				"spec.catalogRef must be a catalog that admits Environments of the namespace others: AppCatalog teams/late does not; " +
					"its spec.accessPolicy can",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			obstacles := cluster(test.beside...).Check(test.e)
			var got []string
			for _, obstacle := range obstacles {
				got = append(got, obstacle.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("obstacles (-want +got):\n%s", diff)
			}
			if len(obstacles) > 0 && obstacles[0].Reason != test.reason {
				t.Errorf("reason = %s, want %s", obstacles[0].Reason, test.reason)
			}
		})
	}
}

func TestBuilder(t *testing.T) {
	for _, test := range []struct {
		name      string
		namespace string
		change    func(*placement.Cluster)
		want      string
	}{
		{name: "none", namespace: "nowhere"},
		{name: "the oldest, before the catalog", namespace: "dev", want: "base"},
		{name: "after a catalog", namespace: "dev", change: func(n *placement.Cluster) {
			n.Catalogs = append(n.Catalogs, catalog("early", "dev", 9, nil))
		}},
		{name: "in the same second as a catalog", namespace: "dev", change: func(n *placement.Cluster) {
			n.Catalogs = append(n.Catalogs, catalog("zzz", "dev", 10, nil))
		}},
		{name: "of any age without a catalog", namespace: "lone", want: "lone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := cluster()
			if test.change != nil {
				test.change(n)
			}
			got := ""
			if builder := n.Builder(test.namespace); builder != nil {
				got = builder.Name
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
