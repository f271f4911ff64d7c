// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// rbac allows what is listed, as "verb resource.group namespace/name", and records what it was asked.
type rbac struct {
	allowed []string
	fault   error
	asked   []string
}

func (r *rbac) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := a.GetResource()
	if a.GetAPIGroup() != "" {
		resource += "." + a.GetAPIGroup()
	}
	request := strings.TrimRight(a.GetVerb()+" "+resource+" "+a.GetNamespace()+"/"+a.GetName(), "/ ")
	r.asked = append(r.asked, request)
	if a.GetUser().GetName() != "jane" || !a.IsResourceRequest() {
		return authorizer.DecisionDeny, "", errors.New("asked for another user")
	}
	if slices.Contains(r.allowed, request) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", r.fault
}

// served resolves in a small cluster, or in one of which nothing is known.
type served struct {
	snapshot *watch.Snapshot
	policy   watch.Policy
}

func (s served) Preset() []schema.GroupResource { return s.policy.Default }

func (s served) Resolve(selection access.Selection) (resources []schema.GroupResource, unmatched []string, known bool) {
	if s.snapshot == nil {
		return nil, nil, false
	}
	types, misses := s.snapshot.Resolve(watch.Selection{
		APIGroups: selection.APIGroups, APIVersions: selection.APIVersions, Resources: selection.Resources, Scope: watch.Scope(selection.Scope),
	}, s.policy)
	for _, t := range types {
		resources = append(resources, t.Resource.GroupResource())
	}
	for _, miss := range misses {
		unmatched = append(unmatched, miss.String())
	}
	return resources, unmatched, true
}

// cluster means ConfigMaps, Secrets and nodes where a rule names no types.
func cluster() served {
	namespaced := func(group, version, resource, kind string) watch.Type {
		return watch.Type{
			Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
			Kind:     kind, Namespaced: true, Preferred: true, Watchable: true,
		}
	}
	nodes := namespaced("", "v1", "nodes", "Node")
	nodes.Namespaced = false
	preset := []schema.GroupResource{{Resource: "configmaps"}, {Resource: "secrets"}, {Resource: "nodes"}}
	return served{policy: watch.Policy{Default: preset}, snapshot: watch.NewSnapshot([]watch.Type{
		namespaced("", "v1", "configmaps", "ConfigMap"),
		namespaced("", "v1", "secrets", "Secret"),
		namespaced("apps", "v1", "deployments", "Deployment"),
		namespaced("example.com", "v1", "deployments", "Deployment"),
		nodes,
	}, nil)}
}

// starting is the same cluster, before anything is known of it.
func starting() served { return served{policy: cluster().policy} }

// watchingAll is the same cluster, where a rule that names no types means all of them.
func watchingAll() served { return served{snapshot: cluster().snapshot} }

// warnings records the warnings of a response.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// plugin is ready for use.
func plugin(t *testing.T, r *rbac, resolver access.Resolver) *callerrights.Plugin {
	t.Helper()
	return pluginAmong(t, r, resolver, existing{})
}

// pluginAmong is ready for use where there are objects already.
func pluginAmong(
	t *testing.T, r *rbac, resolver access.Resolver, references callerrights.References,
) *callerrights.Plugin {
	t.Helper()
	p := callerrights.New()
	p.SetAuthorizer(authorizer.AuthorizerFunc(r.Authorize))
	callerrights.NewInitializer(resolver, references, "slipstream-system").Initialize(p)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return p
}

// request is jane's.
func request(obj, old runtime.Object, operation admission.Operation, subresource string) admission.Attributes {
	accessor := obj.(metav1.Object)
	return admission.NewAttributesRecord(obj, old, configbutler.SchemeGroupVersion.WithKind("Any"),
		accessor.GetNamespace(), accessor.GetName(), configbutler.SchemeGroupVersion.WithResource("any"),
		subresource, operation, nil, false, &user.DefaultInfo{Name: "jane"})
}

func watchRule(rules ...configbutler.ResourceRule) *configbutler.WatchRule {
	return &configbutler.WatchRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"},
		Spec:       configbutler.WatchRuleSpec{Rules: rules},
	}
}

func clusterRule(rules ...configbutler.ClusterResourceRule) *configbutler.ClusterWatchRule {
	return &configbutler.ClusterWatchRule{
		ObjectMeta: metav1.ObjectMeta{Name: "rule"},
		Spec:       configbutler.ClusterWatchRuleSpec{Rules: rules},
	}
}

func repository(secret, signing string) *configbutler.GitRepoConfig {
	repository := &configbutler.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}}
	if secret != "" {
		repository.Spec.SecretRef = &configbutler.SecretReference{Name: secret}
	}
	if signing != "" {
		repository.Spec.Commit = &configbutler.CommitPolicy{
			Signing: &configbutler.CommitSigning{SecretRef: configbutler.SecretReference{Name: signing}},
		}
	}
	return repository
}

func throughProxy(repository *configbutler.GitRepoConfig) *configbutler.GitRepoConfig {
	repository.Spec.ProxySecretRef = &configbutler.SecretReference{Name: "proxy"}
	return repository
}

func withHost(repository *configbutler.GitRepoConfig) *configbutler.GitRepoConfig {
	repository.Spec.Host = &configbutler.GitHost{SecretRef: &configbutler.SecretReference{Name: "api"}}
	return repository
}

func groups(names ...string) []string    { return names }
func resources(names ...string) []string { return names }

func TestWhatACallerMustBeAllowed(t *testing.T) {
	all := []string{"*"}
	tests := []struct {
		name     string
		obj      runtime.Object
		resolver access.Resolver
		// asks are the resources that list and watch are asked for, or whole requests
		asks     []string
		warnings []string
	}{
		{
			name: "a type in its group",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups("apps"), Resources: resources("deployments")}),
			asks: []string{"deployments.apps shop"},
		},
		{
			name: "a type in the core group",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("secrets")}),
			asks: []string{"secrets shop"},
		},
		{
			name: "a plural without a group is every served type of that name",
			obj:  watchRule(configbutler.ResourceRule{Resources: resources("deployments")}),
			asks: []string{"deployments.apps shop", "deployments.example.com shop"},
		},
		{
			name: "a group for short wins over the groups",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("deployments.apps")}),
			asks: []string{"deployments.apps shop"},
		},
		{
			name: "every resource of every group",
			obj:  watchRule(configbutler.ResourceRule{Resources: all}),
			asks: []string{"*.* shop"},
		},
		{
			name: "every resource of a group",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups("apps"), Resources: all}),
			asks: []string{"*.apps shop"},
		},
		{
			name: "every resource of the core group",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("*/*")}),
			asks: []string{"* shop"},
		},
		{
			name: "every resource of a group, for short",
			obj:  watchRule(configbutler.ResourceRule{Resources: resources("*.apps")}),
			asks: []string{"*.apps shop"},
		},
		{
			name:     "a type that is not served, with its group",
			obj:      watchRule(configbutler.ResourceRule{APIGroups: groups("shop.io"), Resources: resources("widgets")}),
			asks:     []string{"widgets.shop.io shop"},
			warnings: []string{"spec.rules[0].resources: widgets: no such resource type; it will be followed when it appears"},
		},
		{
			name:     "a type that is not served, without a group",
			obj:      watchRule(configbutler.ResourceRule{Resources: resources("widgets")}),
			asks:     []string{"widgets.* shop"},
			warnings: []string{"spec.rules[0].resources: widgets: no such resource type; it will be followed when it appears"},
		},
		{
			name: "a type that one of its groups does not serve yet",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups("apps", "later.io"), Resources: resources("deployments")}),
			asks: []string{"deployments.apps shop", "deployments.later.io shop"},
		},
		{
			name:     "a type of the other scope",
			obj:      watchRule(configbutler.ResourceRule{Resources: resources("nodes")}),
			asks:     []string{"nodes.* shop"},
			warnings: []string{"spec.rules[0].resources: nodes: it is of the other scope; it will be followed when it appears"},
		},
		{
			name: "a subresource selects nothing",
			obj:  watchRule(configbutler.ResourceRule{APIGroups: groups("apps"), Resources: resources("deployments/scale")}),
			warnings: []string{
				"spec.rules[0].resources: deployments/scale: a subresource has no objects of its own; it will be followed when it appears",
			},
		},
		{
			name: "the preset, of the rule's scope",
			obj:  watchRule(configbutler.ResourceRule{}),
			asks: []string{"configmaps shop", "secrets shop"},
		},
		{
			name:     "the preset while the types are not known",
			obj:      watchRule(configbutler.ResourceRule{}),
			resolver: starting(),
			asks:     []string{"configmaps shop", "secrets shop", "nodes shop"},
		},
		{
			name:     "the preset, when it is everything",
			obj:      watchRule(configbutler.ResourceRule{APIGroups: groups("apps")}),
			resolver: watchingAll(),
			asks:     []string{"*.apps shop"},
		},
		{
			name:     "a plural while the types are not known",
			obj:      watchRule(configbutler.ResourceRule{Resources: resources("deployments")}),
			resolver: starting(),
			asks:     []string{"deployments.* shop"},
		},
		{
			name: "several rules ask once",
			obj: watchRule(
				configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("secrets", "configmaps")},
				configbutler.ResourceRule{Resources: resources("secrets")}),
			asks: []string{"secrets shop", "configmaps shop"},
		},
		{
			name: "objects in all namespaces",
			obj: clusterRule(configbutler.ClusterResourceRule{
				Scope:        configbutler.ScopeNamespaced,
				ResourceRule: configbutler.ResourceRule{Resources: resources("secrets")},
			}),
			asks: []string{"secrets"},
		},
		{
			name: "objects without a namespace",
			obj: clusterRule(configbutler.ClusterResourceRule{
				Scope:        configbutler.ScopeCluster,
				ResourceRule: configbutler.ResourceRule{Resources: resources("nodes")},
			}),
			asks: []string{"nodes"},
		},
		{name: "a repository without Secrets", obj: repository("", "")},
		{
			name: "the Secrets of a repository",
			obj:  repository("creds", "signing"),
			asks: []string{"get secrets shop/creds", "get secrets shop/signing"},
		},
		{name: "the proxy of a repository", obj: throughProxy(repository("", "")), asks: []string{"get secrets shop/proxy"}},
		{name: "the API of the host of a repository", obj: withHost(repository("", "")), asks: []string{"get secrets shop/api"}},
		{
			name: "a destination",
			obj: &configbutler.GitDestination{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "dest"},
				Spec:       configbutler.GitDestinationSpec{Secrets: "AsIs"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.resolver == nil {
				tt.resolver = cluster()
			}
			want := requests(tt.asks)
			recorded := &warnings{}
			ctx := warning.WithWarningRecorder(t.Context(), recorded)
			all := &rbac{allowed: want}
			if err := plugin(t, all, tt.resolver).Validate(ctx, request(tt.obj, nil, admission.Create, ""), nil); err != nil {
				t.Errorf("refused although everything that it needs is allowed: %v", err)
			}
			if diff := cmp.Diff(want, all.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, recorded.texts); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			refusedWithoutAny(t, tt.obj, tt.resolver, want)
		})
	}
}

// refusedWithoutAny checks that a request is refused if any one of its permissions is missing.
func refusedWithoutAny(t *testing.T, obj runtime.Object, resolver access.Resolver, want []string) {
	t.Helper()
	for i, permission := range want {
		some := &rbac{allowed: slices.Delete(slices.Clone(want), i, i+1)}
		err := plugin(t, some, resolver).Validate(t.Context(), request(obj, nil, admission.Create, ""), nil)
		if !apierrors.IsForbidden(err) {
			t.Errorf("without %q: %v, want Forbidden", permission, err)
		}
	}
}

// requests spells out list and watch for what is not a whole request of get or list.
func requests(asks []string) []string {
	var requests []string
	for _, ask := range asks {
		if strings.HasPrefix(ask, "get ") || strings.HasPrefix(ask, "list ") {
			requests = append(requests, ask)
			continue
		}
		requests = append(requests, "list "+ask, "watch "+ask)
	}
	return requests
}

func TestOnlyWhatIsNewIsChecked(t *testing.T) {
	rule := watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("secrets")})
	labelled := rule.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	labelled.Status.ObservedGeneration = 7
	moved := repository("creds", "")
	moved.Spec.RepoURL = "https://elsewhere.example.com/repo.git"
	tests := []struct {
		name    string
		request admission.Attributes
		refused bool
	}{
		{name: "a new rule", request: request(rule, nil, admission.Create, ""), refused: true},
		{name: "labels", request: request(labelled, rule, admission.Update, "")},
		{name: "status", request: request(rule, watchRule(), admission.Update, "status")},
		{name: "a rule that reads more", request: request(rule, watchRule(), admission.Update, ""), refused: true},
		{
			name:    "a repository that sends the same Secret to another host",
			request: request(moved, repository("creds", ""), admission.Update, ""), refused: true,
		},
		{name: "a repository as it was", request: request(repository("creds", ""), repository("creds", ""), admission.Update, "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := plugin(t, &rbac{}, cluster()).Validate(t.Context(), tt.request, nil)
			if got := apierrors.IsForbidden(err); got != tt.refused {
				t.Errorf("refused = %v (%v), want %v", got, err, tt.refused)
			}
		})
	}
	if callerrights.New().Handles(admission.Delete) {
		t.Error("deletions are checked")
	}
}

// afterGrant is the end of every refusal for a missing permission.
const afterGrant = "\nafter a grant, this answer may come for about 10 seconds more"

func TestRefusalNamesThePermissionAndTheWayOut(t *testing.T) {
	tests := []struct {
		name    string
		obj     runtime.Object
		allowed []string
		want    string
	}{
		{
			name:    "a rule of a namespace",
			obj:     watchRule(configbutler.ResourceRule{APIGroups: groups(""), Resources: resources("configmaps", "secrets")}),
			allowed: requests([]string{"configmaps shop"}),
			want: `user "jane" cannot list and watch secrets in the namespace shop, which the server would do on their behalf: ` +
				`ask for a Role in the namespace shop that allows list and watch on resource "secrets" in API group "", ` +
				`or leave secrets out of spec.rules[0].resources`,
		},
		{
			name: "a cluster rule, half allowed",
			obj: clusterRule(configbutler.ClusterResourceRule{
				Scope: configbutler.ScopeCluster, ResourceRule: configbutler.ResourceRule{Resources: resources("nodes")},
			}),
			allowed: []string{"list nodes"},
			want: `user "jane" cannot watch nodes in the whole cluster, which the server would do on their behalf: ` +
				`ask for a ClusterRole that allows watch on resource "nodes" in API group "", or leave nodes out of spec.rules[0].resources`,
		},
		{
			name: "a Secret",
			obj:  repository("creds", ""),
			want: `user "jane" cannot get secrets "creds" in the namespace shop, which the server would do on their behalf: ` +
				`ask for a Role in the namespace shop that allows get on resource "secrets" in API group "", ` +
				`or let spec.secretRef.name name a Secret that you may read`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := plugin(t, &rbac{allowed: tt.allowed}, cluster()).
				Validate(t.Context(), request(tt.obj, nil, admission.Create, ""), nil)
			if err == nil || !strings.HasSuffix(err.Error(), "is forbidden: "+tt.want+afterGrant) {
				t.Errorf("refusal = %v\nwant it to end in %s", err, tt.want)
			}
		})
	}
}

func TestAnAuthorizerThatFailsAdmitsNothing(t *testing.T) {
	broken := &rbac{fault: errors.New("no answer")}
	err := plugin(t, broken, cluster()).Validate(t.Context(), request(repository("creds", ""), nil, admission.Create, ""), nil)
	if !apierrors.IsInternalError(err) {
		t.Errorf("error = %v, want an internal error", err)
	}
}

func TestAPluginMustBeInitialized(t *testing.T) {
	p := callerrights.New()
	if p.ValidateInitialization() == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
	p.SetAuthorizer(authorizer.AuthorizerFunc((&rbac{}).Authorize))
	if p.ValidateInitialization() == nil {
		t.Error("a plugin without types is accepted")
	}
	callerrights.NewInitializer(cluster(), nil, "").Initialize(p)
	if p.ValidateInitialization() == nil {
		t.Error("a plugin without references is accepted")
	}
}
