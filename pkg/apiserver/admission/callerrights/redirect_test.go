// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// existing is what is in storage, or the fault of a list by its name.
type existing struct {
	rules        []configbutler.WatchRule
	clusterRules []configbutler.ClusterWatchRule
	policies     []configbutler.SyncPolicy
	destinations []configbutler.GitDestination
	catalogs     []configbutler.AppCatalog
	environments []configbutler.Environment
	syncs        []configbutler.SyncStatus
	sinks        []configbutler.NotificationSink
	namespaces   []string
	fails        string
}

func (e existing) fault(list string) error {
	if e.fails == list {
		return errors.New("no storage")
	}
	return nil
}

func (e existing) WatchRules(context.Context) ([]v1alpha1.WatchRule, error) {
	return inVersion(e.rules, v1alpha1.Convert_configbutler_WatchRule_To_v1alpha1_WatchRule), e.fault("rules")
}

func (e existing) ClusterWatchRules(context.Context) ([]v1alpha1.ClusterWatchRule, error) {
	return inVersion(e.clusterRules, v1alpha1.Convert_configbutler_ClusterWatchRule_To_v1alpha1_ClusterWatchRule), e.fault("clusterRules")
}

func (e existing) SyncPolicies(context.Context) ([]v1alpha1.SyncPolicy, error) {
	return inVersion(e.policies, v1alpha1.Convert_configbutler_SyncPolicy_To_v1alpha1_SyncPolicy), e.fault("policies")
}

func (e existing) GitDestinations(context.Context) ([]v1alpha1.GitDestination, error) {
	return inVersion(e.destinations, v1alpha1.Convert_configbutler_GitDestination_To_v1alpha1_GitDestination), e.fault("destinations")
}

func (e existing) AppCatalog(_ context.Context, namespace, name string) (*v1alpha1.AppCatalog, error) {
	catalogs := inVersion(e.catalogs, v1alpha1.Convert_configbutler_AppCatalog_To_v1alpha1_AppCatalog)
	return called(catalogs, namespace, name, e.fault("catalog"))
}

func (e existing) Environment(_ context.Context, namespace, name string) (*v1alpha1.Environment, error) {
	environments := inVersion(e.environments, v1alpha1.Convert_configbutler_Environment_To_v1alpha1_Environment)
	return called(environments, namespace, name, e.fault("environment"))
}

func (e existing) SyncStatus(_ context.Context, namespace, name string) (*v1alpha1.SyncStatus, error) {
	syncs := inVersion(e.syncs, v1alpha1.Convert_configbutler_SyncStatus_To_v1alpha1_SyncStatus)
	return called(syncs, namespace, name, e.fault("record"))
}

func (e existing) NotificationSink(_ context.Context, namespace, name string) (*v1alpha1.NotificationSink, error) {
	sinks := inVersion(e.sinks, v1alpha1.Convert_configbutler_NotificationSink_To_v1alpha1_NotificationSink)
	return called(sinks, namespace, name, e.fault("sink"))
}

func (e existing) HasNamespace(_ context.Context, name string) (bool, error) {
	return slices.Contains(e.namespaces, name), e.fault("namespace")
}

// NamespaceLabels says that each namespace has a label with its name.
func (e existing) NamespaceLabels(_ context.Context, name string) (labels.Set, bool, error) {
	return labels.Set{"team": name}, true, e.fault("labels")
}

// called finds an object, unless there is a fault.
func called[T any, O interface {
	*T
	metav1.Object
}](objects []T, namespace, name string, fault error) (O, error) {
	if fault != nil {
		return nil, fault
	}
	for i := range objects {
		if object := O(&objects[i]); object.GetNamespace() == namespace && object.GetName() == name {
			return object, nil
		}
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("any"), name)
}

// inVersion is how clients see objects of storage.
func inVersion[In, Out any](stored []In, convert func(*In, *Out, conversion.Scope) error) []Out {
	out := make([]Out, len(stored))
	for i := range stored {
		utilruntime.Must(convert(&stored[i], &out[i], nil))
	}
	return out
}

// goal is the destination shop/main, which writes to the repository shop/repo.
func goal(change ...func(*configbutler.GitDestination)) *configbutler.GitDestination {
	destination := &configbutler.GitDestination{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"},
		Spec: configbutler.GitDestinationSpec{
			RepoRef: configbutler.ObjectReference{Name: "repo"}, Branch: "main", Secrets: configbutler.SecretsEncrypt, AccessPolicy: open(),
		},
	}
	for _, apply := range change {
		apply(destination)
	}
	return destination
}

// open admits everything.
func open() *configbutler.AccessPolicy {
	return &configbutler.AccessPolicy{
		NamespacedRules: configbutler.NamespacedRules{Mode: configbutler.AccessModeAllNamespaces}, AllowClusterRules: true,
	}
}

// admits admits the WatchRules of one more namespace.
func admits(namespace string) func(*configbutler.GitDestination) {
	return func(d *configbutler.GitDestination) {
		d.Spec.AccessPolicy = &configbutler.AccessPolicy{NamespacedRules: configbutler.NamespacedRules{
			Mode: configbutler.AccessModeFromSelector, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": namespace}},
		}}
	}
}

func readBy(recipients ...string) func(*configbutler.GitDestination) {
	return func(d *configbutler.GitDestination) {
		d.Spec.Encryption = &configbutler.Encryption{AgeRecipients: recipients}
	}
}

// openRepository is the repository shop/repo, which admits everything.
func openRepository() *configbutler.GitRepoConfig {
	repository := repository("", "")
	repository.Spec.AccessPolicy = open()
	return repository
}

func closed(d *configbutler.GitDestination) { d.Spec.AccessPolicy = nil }

// ignores leaves fields out, each by a rule.
func ignores(fields ...string) func(*configbutler.GitDestination) {
	return func(d *configbutler.GitDestination) {
		for _, field := range fields {
			d.Spec.Ignore = append(d.Spec.Ignore, configbutler.IgnoreRule{Fields: []string{field}})
		}
	}
}

func plainly(d *configbutler.GitDestination) { d.Spec.Secrets = configbutler.SecretsAsIs }
func without(d *configbutler.GitDestination) { d.Spec.Secrets = configbutler.SecretsOmit }
func mine(d *configbutler.GitDestination)    { d.Spec.RepoRef.Name = "mine" }

// fed has rules of several namespaces, and of the cluster, that refer to shop/main, and others that do not.
func fed() existing {
	rule := func(namespace, name string, to configbutler.ObjectReference, selected ...string) configbutler.WatchRule {
		return configbutler.WatchRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: configbutler.WatchRuleSpec{
				DestinationRef: to, Rules: []configbutler.ResourceRule{{APIGroups: groups(""), Resources: selected}},
			},
		}
	}
	nodes := clusterRule(configbutler.ClusterResourceRule{
		Scope: configbutler.ScopeCluster, ResourceRule: configbutler.ResourceRule{Resources: resources("nodes")},
	})
	nodes.Spec.DestinationRef = configbutler.NamespacedObjectReference{Namespace: "shop", Name: "main"}
	elsewhere := nodes.DeepCopy()
	elsewhere.Spec.DestinationRef.Namespace = "bank"
	elsewhere.Spec.Rules[0].Resources = resources("persistentvolumes")
	return existing{
		rules: []configbutler.WatchRule{
			rule("shop", "admin", configbutler.ObjectReference{Name: "main"}, "configmaps", "secrets"),
			rule("shop", "again", configbutler.ObjectReference{Name: "main", Namespace: "shop"}, "secrets"),
			rule("bank", "far", configbutler.ObjectReference{Name: "main", Namespace: "shop"}, "configmaps"),
			rule("bank", "own", configbutler.ObjectReference{Name: "main"}, "pods"),
			rule("shop", "other", configbutler.ObjectReference{Name: "other"}, "pods"),
		},
		clusterRules: []configbutler.ClusterWatchRule{*nodes, *elsewhere},
		destinations: []configbutler.GitDestination{
			*goal(),
			*goal(func(d *configbutler.GitDestination) { d.Name, d.Spec.RepoRef.Name = "other", "elsewhere" }),
			*goal(func(d *configbutler.GitDestination) { d.Namespace = "bank" }),
		},
	}
}

// fromEverywhere is what the rules of fed send to shop/main.
var fromEverywhere = []string{"configmaps shop", "secrets shop", "configmaps bank", "nodes"}

// ofShop is what the rules of namespace shop send to shop/main, ofBank what is sent to bank/main.
var (
	ofShop = []string{"configmaps shop", "secrets shop"}
	ofBank = []string{"pods bank", "persistentvolumes.*"}
)

func TestRedirectingNeedsTheRightsOfWhatIsRedirected(t *testing.T) {
	at := func(url, secret string) *configbutler.GitRepoConfig {
		repository := repository(secret, "")
		repository.Spec.RepoURL, repository.Spec.AccessPolicy = url, open()
		return repository
	}
	private := func(url string) *configbutler.GitRepoConfig {
		repository := at(url, "")
		repository.Spec.AccessPolicy = nil
		return repository
	}
	omitting := fed()
	without(&omitting.destinations[0])
	across := fed()
	across.destinations = []configbutler.GitDestination{*goal(func(d *configbutler.GitDestination) {
		d.Namespace, d.Name, d.Spec.RepoRef.Namespace = "bank", "main", "shop"
	})}
	archiving := existing{policies: []configbutler.SyncPolicy{*archivingIn("main")}, destinations: fed().destinations}
	tests := []struct {
		name     string
		obj, old runtime.Object
		existing existing
		asks     []string
	}{
		{name: "a destination that the archive waits for", obj: goal(), existing: archiving, asks: []string{records}},
		{
			name: "a destination that the archive is not in",
			obj:  goal(func(d *configbutler.GitDestination) { d.Name = "new" }), existing: archiving,
		},
		{name: "a repository with the archive", obj: at("mine", ""), old: at("u", ""), existing: archiving, asks: []string{records}},
		{name: "a destination that rules wait for", obj: goal(), existing: fed(), asks: fromEverywhere},
		{name: "without Secrets", obj: goal(without), existing: fed(), asks: []string{"configmaps shop", "configmaps bank", "nodes"}},
		{name: "a destination of another name", obj: goal(func(d *configbutler.GitDestination) { d.Name = "new" }), existing: fed()},
		{name: "a destination that no rule refers to", obj: goal(plainly), existing: existing{}},
		{name: "Secrets plainly", obj: goal(plainly), old: goal(), existing: fed(), asks: fromEverywhere},
		{name: "rules that it does not admit", obj: goal(closed), existing: fed(), asks: ofShop},
		{name: "Secrets plainly, without what it does not admit", obj: goal(plainly, closed), old: goal(closed), existing: fed(), asks: ofShop},
		{name: "Secrets no longer", obj: goal(without), old: goal(plainly), existing: existing{fails: "rules"}},
		{name: "Secrets no longer plainly", obj: goal(readBy("age1new")), old: goal(plainly), existing: existing{fails: "rules"}},
		{name: "Secrets again", obj: goal(), old: goal(without), existing: fed(), asks: fromEverywhere},
		{
			name: "a recipient less", obj: goal(readBy("age1b")), old: goal(readBy("age1a", "age1b")), existing: existing{fails: "rules"},
		},
		{name: "another recipient, without Secrets", obj: goal(readBy("age1"), without), old: goal(without), existing: existing{fails: "rules"}},
		{name: "more rules admitted", obj: goal(), old: goal(closed), existing: fed(), asks: []string{"configmaps bank", "nodes"}},
		{name: "a namespace admitted", obj: goal(admits("bank")), old: goal(closed), existing: fed(), asks: []string{"configmaps bank"}},
		{name: "a namespace admitted that has no rule", obj: goal(admits("other")), old: goal(closed), existing: fed()},
		{name: "fewer rules admitted", obj: goal(closed), old: goal(), existing: fed()},
		{name: "fewer rules admitted, and redirected", obj: goal(closed, mine), old: goal(), existing: fed(), asks: fromEverywhere},
		{
			name: "more rules admitted by the repository", existing: fed(),
			obj: at("u", ""), old: private("u"), asks: []string{"configmaps bank", "nodes"},
		},
		{name: "rules that the repository does not admit", obj: private("mine"), old: private("u"), existing: fed(), asks: ofShop},
		{name: "a destination that the repository does not admit", obj: private("mine"), old: private("u"), existing: across},
		{name: "a destination that the repository begins to admit", obj: at("u", ""), old: private("u"), existing: across, asks: ofBank},
		{
			name: "a proxy to the repository", existing: fed(), obj: throughProxy(at("u", "")), old: at("u", ""),
			asks: append([]string{"get secrets shop/proxy"}, fromEverywhere...),
		},
		{name: "another repository", obj: goal(mine), old: goal(), existing: fed(), asks: fromEverywhere},
		{
			name: "the repository of that name in another namespace", existing: fed(), asks: fromEverywhere,
			obj: goal(func(d *configbutler.GitDestination) { d.Spec.RepoRef.Namespace = "mine" }), old: goal(),
		},
		{
			name: "another branch", existing: fed(), asks: fromEverywhere,
			obj: goal(func(d *configbutler.GitDestination) { d.Spec.Branch = "mine" }), old: goal(),
		},
		{
			name: "another recipient", existing: fed(), asks: fromEverywhere,
			obj: goal(func(d *configbutler.GitDestination) {
				d.Spec.Encryption = &configbutler.Encryption{AgeRecipients: []string{"age1mine"}}
			}), old: goal(),
		},
		{
			name: "the key pair of the server in place of a recipient", existing: fed(), asks: fromEverywhere,
			obj: goal(readBy()), old: goal(readBy("age1one")),
		},
		{
			name: "fields that were left out", existing: fed(), asks: fromEverywhere,
			obj: goal(ignores("/data/color")), old: goal(ignores("/data/color", "/data/token")),
		},
		{name: "more fields left out", obj: goal(ignores("/data/token", "/data/color")), old: goal(ignores("/data/color")), existing: fed()},
		{
			name: "the same repository, spelled out", existing: fed(),
			obj: goal(func(d *configbutler.GitDestination) { d.Spec.RepoRef.Namespace = "shop" }), old: goal(),
		},
		{
			name: "no redirect", existing: existing{fails: "rules"},
			obj: goal(func(d *configbutler.GitDestination) {
				d.Spec.Suspend, d.Spec.Prune, d.Spec.BaseFolder = true, configbutler.PruneNever, "a"
				d.Labels = map[string]string{"a": "b"}
			}), old: goal(),
		},
		{name: "a repository that a destination waits for", obj: at("u", ""), existing: fed(), asks: fromEverywhere},
		{name: "another repository", obj: at("mine", ""), old: at("u", ""), existing: fed(), asks: fromEverywhere},
		{
			name: "a repository with another Secret", existing: fed(),
			obj: at("u", "creds"), old: at("u", ""), asks: append([]string{"get secrets shop/creds"}, fromEverywhere...),
		},
		{
			name: "a repository that gets no Secrets", existing: omitting,
			obj: at("mine", ""), old: at("u", ""), asks: []string{"configmaps shop", "configmaps bank", "nodes"},
		},
		{
			name: "a repository of a destination in another namespace", existing: across,
			obj: at("mine", ""), old: at("u", ""), asks: ofBank,
		},
		{name: "a repository that no destination refers to", obj: at("u", ""), existing: existing{rules: fed().rules, fails: "rules"}},
		{
			name: "a repository where it was", existing: existing{fails: "destinations"},
			obj: func() runtime.Object {
				repository := at("u", "")
				repository.Spec.AllowedBranches = []string{"more"}
				return repository
			}(), old: at("u", ""),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			operation := admission.Create
			if tt.old != nil {
				operation = admission.Update
			}
			want := requests(tt.asks)
			caller := &rbac{allowed: want}
			asked := request(tt.obj, tt.old, operation, "")
			if err := pluginAmong(t, caller, cluster(), tt.existing).Validate(t.Context(), asked, nil); err != nil {
				t.Errorf("refused although everything that it needs is allowed: %v", err)
			}
			if diff := cmp.Diff(want, caller.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			for i, permission := range want {
				some := &rbac{allowed: append(append([]string{}, want[:i]...), want[i+1:]...)}
				err := pluginAmong(t, some, cluster(), tt.existing).Validate(t.Context(), asked, nil)
				if !apierrors.IsForbidden(err) {
					t.Errorf("without %q: %v, want Forbidden", permission, err)
				}
			}
		})
	}
}

func TestNothingIsRedirectedUnseen(t *testing.T) {
	for _, list := range []string{"rules", "clusterRules", "policies", "destinations"} {
		t.Run(list, func(t *testing.T) {
			references := fed()
			references.fails = list
			caller := &rbac{allowed: requests(fromEverywhere)}
			err := pluginAmong(t, caller, cluster(), references).
				Validate(t.Context(), request(openRepository(), nil, admission.Create, ""), nil)
			if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry || seconds < 1 {
				t.Errorf("error = %v, want one that asks to try again", err)
			}
		})
	}
}

func TestNoNamespaceIsAdmittedUnseen(t *testing.T) {
	references := fed()
	references.fails = "labels"
	err := pluginAmong(t, &rbac{allowed: requests(fromEverywhere)}, cluster(), references).
		Validate(t.Context(), request(goal(admits("bank")), nil, admission.Create, ""), nil)
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("error = %v, want one that asks to try again", err)
	}
}

// TestRulesThatAreNotAdmittedStayUnknown checks that a refusal names no rule of a namespace that the destination does not admit.
func TestRulesThatAreNotAdmittedStayUnknown(t *testing.T) {
	err := pluginAmong(t, &rbac{}, cluster(), fed()).Validate(t.Context(), request(goal(closed), nil, admission.Create, ""), nil)
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "bank") || strings.Contains(err.Error(), "ClusterWatchRule") {
		t.Errorf("error = %v, want one that names only rules of the namespace shop", err)
	}
}

func TestRefusalOfARedirectionNamesTheRule(t *testing.T) {
	allowed := requests([]string{"configmaps shop", "configmaps bank"})
	refusal := func(obj runtime.Object) string {
		err := pluginAmong(t, &rbac{allowed: allowed}, cluster(), fed()).
			Validate(t.Context(), request(obj, nil, admission.Create, ""), nil)
		if !apierrors.IsForbidden(err) {
			t.Fatalf("error = %v, want Forbidden", err)
		}
		return err.Error()
	}
	for kind, obj := range map[string]runtime.Object{"GitDestination": goal(), "GitRepoConfig": openRepository()} {
		t.Run(kind, func(t *testing.T) {
			got := refusal(obj)
			for _, want := range []string{
				`user "jane" cannot list and watch secrets in the namespace shop, which WatchRule shop/admin sends to ` +
					`GitDestination shop/main: ask for a Role in the namespace shop that allows list and watch on resource ` +
					`"secrets" in API group "", or use a ` + kind + ` of another name`,
				`user "jane" cannot list and watch nodes in the whole cluster, which ClusterWatchRule rule sends to ` +
					`GitDestination shop/main: ask for a ClusterRole`,
			} {
				if !strings.Contains(got, want) {
					t.Errorf("refusal = %s\nwant in it %s", got, want)
				}
			}
		})
	}
}

func TestARefusalStaysShort(t *testing.T) {
	const namespaces, most = 200, 10
	var many existing
	for i := range namespaces {
		rule := watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("secrets")})
		rule.Namespace = fmt.Sprintf("team-%d", i)
		rule.Spec.DestinationRef = configbutler.ObjectReference{Namespace: "shop", Name: "main"}
		many.rules = append(many.rules, *rule)
	}
	err := pluginAmong(t, &rbac{}, cluster(), many).Validate(t.Context(), request(goal(), nil, admission.Create, ""), nil)
	if !apierrors.IsForbidden(err) || strings.Count(err.Error(), "cannot list and watch") != most {
		t.Errorf("refusal = %v\nwant %d permissions in it", err, most)
	}
}
