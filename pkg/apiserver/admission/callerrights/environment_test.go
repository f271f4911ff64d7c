// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

type environmentSpec = *configbutler.EnvironmentSpec

// environment builds the namespace alice from the catalog teams/shop.
func environment(change ...func(environmentSpec)) *configbutler.Environment {
	environment := &configbutler.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice"},
		Spec: configbutler.EnvironmentSpec{
			CatalogRef: configbutler.ObjectReference{Name: "shop"}, TargetNamespace: "alice", Type: configbutler.EnvironmentShared,
			Adapt:          configbutler.Adaptation{IngressHosts: configbutler.IngressHosts{Type: configbutler.IngressHostsOmit}},
			DeletionPolicy: configbutler.DeletionPolicyDelete,
		},
	}
	for _, apply := range change {
		apply(&environment.Spec)
	}
	return environment
}

func patched(text string) func(environmentSpec) {
	return func(s environmentSpec) {
		s.Patches = append(s.Patches, configbutler.Patch{Target: configbutler.PatchTarget{Kind: "Deployment"}, Patch: text})
	}
}

func branch(s environmentSpec) {
	s.Type = configbutler.EnvironmentBranch
	s.BranchWorkloads = []configbutler.WorkloadReference{{Kind: configbutler.WorkloadStatefulSet, Name: "db"}}
}

// among is where the catalog teams/shop is, and the environment teams/alice, which has records.
func among(catalog *configbutler.AppCatalog) existing {
	record := func(name string, subject configbutler.SubjectKind) configbutler.SyncStatus {
		return configbutler.SyncStatus{
			ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name},
			Spec:       configbutler.SyncStatusSpec{Subject: configbutler.SyncSubject{Kind: subject, Name: "alice"}},
		}
	}
	return existing{
		catalogs: []configbutler.AppCatalog{*catalog}, environments: []configbutler.Environment{*environment()},
		syncs: []configbutler.SyncStatus{
			record("alice-1", configbutler.SubjectEnvironment), record("shop-1", configbutler.SubjectAppCatalog),
		},
	}
}

const (
	usesCatalog = "get appcatalogs.configbutler.ai teams/shop"
	getsSecrets = "get secrets production"
	getsConfigs = "get configmaps production"
)

// written spells out what writing types in a namespace takes.
func written(namespace string, types ...string) []string {
	var asks []string
	for _, resource := range types {
		for _, verb := range []string{"create", "patch", "delete"} {
			asks = append(asks, verb+" "+resource+" "+namespace)
		}
	}
	return asks
}

// builds is what building alice takes, with workloads of some types.
func builds(workloads ...string) []string {
	types := []string{"configmaps", "secrets", "serviceaccounts", "services"}
	for _, group := range [][]string{filter(workloads, "apps"), {"horizontalpodautoscalers.autoscaling"}, filter(workloads, "batch")} {
		types = append(types, group...)
	}
	return written("alice", append(types, "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy")...)
}

func filter(types []string, group string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return !strings.HasSuffix(t, "."+group) })
}

var (
	everyKind = []string{
		"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "cronjobs.batch", "jobs.batch",
	}
	// buildsShop is what building alice from the catalog takes.
	buildsShop = slices.Concat([]string{usesCatalog, getsSecrets}, builds("deployments.apps"))
)

// naming includes the object root.
func naming(apiVersion, kind string) func(environmentSpec) {
	return func(s environmentSpec) {
		s.Include = append(s.Include, configbutler.IncludedObject{APIVersion: apiVersion, Kind: kind, Name: "root"})
	}
}

func TestWhatAnEnvironmentTakes(t *testing.T) {
	shop := among(catalog())
	sharing := among(catalog(shared))
	offering := among(catalog())
	offering.catalogs[0].Status.Workloads = []configbutler.CatalogEntry{{Kind: configbutler.WorkloadCronJob, Name: "report"}}
	there := among(catalog())
	there.namespaces = []string{"alice"}
	tests := []struct {
		name     string
		obj      *configbutler.Environment
		existing existing
		asks     []string
	}{
		{name: "the workloads of a catalog", obj: environment(), existing: shop, asks: buildsShop},
		{
			name: "of two kinds", obj: environment(), existing: among(catalog(andBatch)),
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds("deployments.apps", "cronjobs.batch")),
		},
		{
			name: "of a kind that is offered still", obj: environment(), existing: offering,
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds("deployments.apps", "cronjobs.batch")),
		},
		{
			name: "of a kind that is offered no more", existing: shop,
			obj: func() *configbutler.Environment {
				e := environment()
				e.Status.ChangedWorkloads = []configbutler.WorkloadChange{{Kind: configbutler.WorkloadJob, Name: "migrate"}}
				return e
			}(),
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds("deployments.apps", "jobs.batch")),
		},
		{
			name: "whatever a selector matches", obj: environment(), existing: among(catalog(selecting)),
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds(everyKind...)),
		},
		{
			name: "whatever there was at a revision", existing: shop,
			obj:  environment(func(s environmentSpec) { s.PinnedRevision = ptr.To[int64](3) }),
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds(everyKind...)),
		},
		{
			name: "some workloads", obj: environment(branch), existing: among(catalog(selecting)),
			asks: slices.Concat([]string{usesCatalog, getsSecrets}, builds("statefulsets.apps")),
		},
		{
			name: "Secrets that are shared", obj: environment(), existing: sharing,
			asks: slices.Concat([]string{usesCatalog}, builds("deployments.apps")),
		},
		{
			name: "a patch of an image", existing: sharing,
			obj:  environment(patched("spec: {template: {spec: {containers: [{name: web, image: secret}]}}}")),
			asks: slices.Concat([]string{usesCatalog}, builds("deployments.apps")),
		},
		{
			name: "a patch that refers to a Secret", existing: sharing, asks: buildsShop,
			obj: environment(patched("spec: {template: {spec: {containers: [{name: web, envFrom: [{secretRef: {name: root}}]}]}}}")),
		},
		{
			name: "an operation that refers to a Secret", existing: sharing, asks: buildsShop,
			obj: environment(patched(`[{op: replace, path: /spec/template/spec/volumes/0/secret/secretName, value: root}]`)),
		},
		{
			name: "a patch that refers to an account", existing: sharing, asks: buildsShop,
			obj: environment(patched("{}"), patched("spec: {template: {spec: {serviceAccountName: root}}}")),
		},
		{
			name: "a patch that refers to a ConfigMap", existing: sharing,
			obj:  environment(patched("spec: {template: {spec: {containers: [{name: web, envFrom: [{configMapRef: {name: root}}]}]}}}")),
			asks: slices.Concat([]string{usesCatalog, getsConfigs}, builds("deployments.apps")),
		},
		{
			name: "an operation that refers to a ConfigMap", existing: shop,
			obj:  environment(patched(`[{op: replace, path: /spec/template/spec/volumes/0/configMap/name, value: root}]`)),
			asks: slices.Concat([]string{usesCatalog, getsSecrets, getsConfigs}, builds("deployments.apps")),
		},
		{
			name: "a patch that refers to a ConfigMap of a catalog that is not there", existing: existing{},
			obj:  environment(patched("spec: {template: {spec: {volumes: [{name: root, configMap: {name: root}}]}}}")),
			asks: slices.Concat([]string{usesCatalog}, builds()),
		},
		{
			name: "a patch that refers to a certificate", existing: sharing,
			obj:  environment(patched("spec: {listeners: [{name: a, tls: {certificateRefs: [{name: root}]}}]}")),
			asks: slices.Concat([]string{usesCatalog, getsSecrets, getsConfigs}, builds("deployments.apps")),
		},
		{
			name: "a patch that refers to the settings of a Gateway", existing: sharing,
			obj:  environment(patched("[{op: add, path: /spec/infrastructure/parametersRef/name, value: root}]")),
			asks: slices.Concat([]string{usesCatalog, getsSecrets, getsConfigs}, builds("deployments.apps")),
		},
		{
			name: "a Secret that is included", existing: sharing, asks: buildsShop, obj: environment(naming("v1", "Secret")),
		},
		{
			name: "a ConfigMap that is included", existing: sharing, obj: environment(naming("v1", "ConfigMap")),
			asks: slices.Concat([]string{usesCatalog, getsConfigs}, builds("deployments.apps")),
		},
		{
			name: "a custom resource that is included", existing: sharing, obj: environment(naming("example.com/v1", "Policy")),
			asks: slices.Concat([]string{usesCatalog, "get policies.example.com production/root"}, builds("deployments.apps")[:18],
				written("alice", "policies.example.com"), builds("deployments.apps")[18:]),
		},
		{
			name: "a namespace", existing: shop,
			obj:  environment(func(s environmentSpec) { s.CreateNamespace = true }),
			asks: slices.Concat(buildsShop, []string{"create namespaces"}),
		},
		{
			name: "an existing namespace", existing: there,
			obj: environment(func(s environmentSpec) { s.CreateNamespace = true }), asks: buildsShop,
		},
		{
			name: "Ingresses", existing: shop,
			obj: environment(func(s environmentSpec) { s.Adapt.IngressHosts.Type = configbutler.IngressHostsAsSource }),
			asks: slices.Concat(buildsShop[:len(buildsShop)-6],
				written("alice", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy")),
		},
		{
			name: "the permissions of an account", existing: shop,
			obj:  environment(func(s environmentSpec) { s.ServiceAccountName = "syncer" }),
			asks: slices.Concat([]string{"impersonate serviceaccounts teams/syncer"}, buildsShop),
		},
		{
			name: "a catalog of another namespace", existing: shop,
			obj:  environment(func(s environmentSpec) { s.CatalogRef.Namespace = "platform" }),
			asks: slices.Concat([]string{"get appcatalogs.configbutler.ai platform/shop"}, builds()),
		},
		{
			name: "a catalog that is not there", obj: environment(), existing: existing{},
			asks: slices.Concat([]string{usesCatalog}, builds()),
		},
		{
			name: "some workloads of it", obj: environment(branch), existing: existing{},
			asks: slices.Concat([]string{usesCatalog}, builds("statefulsets.apps")),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { asksFor(t, request(tt.obj, nil, admission.Create, ""), tt.existing, tt.asks) })
	}
}

// asksFor expects a request to be admitted by these permissions, and by none less.
func asksFor(t *testing.T, asked admission.Attributes, existing existing, asks []string) {
	t.Helper()
	caller := &rbac{allowed: asks}
	if err := pluginAmong(t, caller, cluster(), existing).Validate(t.Context(), asked, nil); err != nil {
		t.Errorf("refused although everything that it needs is allowed: %v", err)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(asks)), slices.Sorted(slices.Values(caller.asked))); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for i, permission := range asks {
		some := &rbac{allowed: slices.Delete(slices.Clone(asks), i, i+1)}
		if err := pluginAmong(t, some, cluster(), existing).Validate(t.Context(), asked, nil); !apierrors.IsForbidden(err) {
			t.Errorf("without %q: %v, want Forbidden", permission, err)
		}
	}
}

func TestWhatAChangeOfAnEnvironmentTakes(t *testing.T) {
	automatic := func(s environmentSpec) { s.AutoSync = true }
	shadowed := func(s environmentSpec) { s.AutoSync, s.Shadow = true, true }
	orphaning := func(s environmentSpec) { s.DeletionPolicy = configbutler.DeletionPolicyOrphan }
	pinned := func(s environmentSpec) { s.PinnedRevision = ptr.To[int64](3) }
	tests := []struct {
		name     string
		from, to func(environmentSpec)
		asks     []string
	}{
		{name: "automation", to: automatic, asks: buildsShop},
		{name: "no automation", from: automatic},
		{name: "automation that writes", from: shadowed, to: automatic, asks: buildsShop},
		{name: "automation that only shows", from: automatic, to: shadowed},
		{name: "automation that only shows, from now on", to: shadowed, asks: buildsShop},
		{name: "a patch", to: patched("{}"), asks: buildsShop},
		{name: "a patch less", from: patched("{}"), asks: buildsShop},
		{name: "what is written goes", from: orphaning, asks: buildsShop},
		{name: "what is written stays", to: orphaning},
		{name: "what there was at a revision", to: pinned, asks: slices.Concat(buildsShop[:2], builds(everyKind...))},
		{name: "what there is now", from: pinned},
		{name: "when and how long", to: func(s environmentSpec) {
			s.SyncWindows = []configbutler.SyncWindow{{Name: "nightly"}}
			s.TTL, s.HistoryLimit = &metav1.Duration{Duration: 1}, ptr.To[int32](5)
		}},
		{name: "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			versions := []*configbutler.Environment{environment(), environment()}
			for i, change := range []func(environmentSpec){tt.from, tt.to} {
				if change != nil {
					change(&versions[i].Spec)
				}
			}
			versions[1].Labels = map[string]string{"a": "b"}
			asksFor(t, request(versions[1], versions[0], admission.Update, ""), among(catalog()), tt.asks)
		})
	}
}

// TestIncludeWithoutACatalog has the catalog be away, so that it is not known in which namespace the objects are.
func TestIncludeWithoutACatalog(t *testing.T) {
	all := &rbac{allowed: slices.Concat(buildsShop, builds(everyKind...), written("alice", "widgets.example.com"))}
	for name, tt := range map[string]struct {
		was, is *configbutler.Environment
		refused bool
	}{
		"a new one": {is: environment(naming("v1", "ConfigMap")), refused: true},
		"one more": {
			was: environment(naming("v1", "ConfigMap")),
			is:  environment(naming("v1", "ConfigMap"), naming("example.com/v1", "Widget")), refused: true,
		},
		"none any more": {was: environment(naming("v1", "ConfigMap")), is: environment()},
		"another field": {
			was: environment(naming("v1", "ConfigMap")), is: environment(naming("v1", "ConfigMap"), func(s environmentSpec) { s.AutoSync = true }),
		},
	} {
		asked := request(tt.is, nil, admission.Create, "")
		if tt.was != nil {
			asked = request(tt.is, tt.was, admission.Update, "")
		}
		err := pluginAmong(t, all, cluster(), existing{}).Validate(t.Context(), asked, nil)
		if apierrors.IsForbidden(err) != tt.refused || tt.refused && !strings.Contains(err.Error(), "spec.include: it names objects") ||
			!tt.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPatchesWithoutACatalog has the catalog be away, so that it is not known which Secrets patches name. Requests of others may wait.
func TestPatchesWithoutACatalog(t *testing.T) {
	for text, refused := range map[string]bool{
		"{metadata: {labels: {a: b}}}": false,
		"{spec: {template: {spec: {volumes: [{name: a, secret: {secretName: root}}]}}}}": true,
		"{spec: {template: {spec: {volumes: [{name: a, configMap: {name: root}}]}}}}":    true,
		"{spec: {template: {spec: {serviceAccountName: root}}}}":                         true,
	} {
		all := &rbac{allowed: slices.Concat(buildsShop, builds(everyKind...))}
		changed := request(environment(patched(text)), environment(), admission.Update, "")
		err := pluginAmong(t, all, cluster(), existing{}).Validate(t.Context(), changed, nil)
		if apierrors.IsForbidden(err) != refused || refused && !strings.Contains(err.Error(), "create the catalog first") {
			t.Errorf("%s: %v", text, err)
		}
		other := request(environment(patched(text), func(s environmentSpec) { s.AutoSync = true }), environment(patched(text)),
			admission.Update, "")
		if err := pluginAmong(t, all, cluster(), existing{}).Validate(t.Context(), other, nil); err != nil {
			t.Errorf("%s, another field: %v", text, err)
		}
	}
}

// requestAt is jane's, at a subresource.
func requestAt(resource, subresource, name string, body runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(body, nil, configbutler.SchemeGroupVersion.WithKind("Any"),
		"teams", name, configbutler.SchemeGroupVersion.WithResource(resource),
		subresource, admission.Create, nil, false, &user.DefaultInfo{Name: "jane"})
}

func TestWhatRequestsForAnEnvironmentTake(t *testing.T) {
	sync, retry := &configbutler.SyncRequest{}, &configbutler.Retry{}
	tests := []struct {
		name  string
		asked admission.Attributes
		asks  []string
	}{
		{"a sync", requestAt("environments", "sync", "alice", sync), buildsShop},
		{"a decision about conflicts", requestAt("environments", "resolve", "alice", &configbutler.ConflictResolution{}), buildsShop},
		{
			"a rollback", requestAt("environments", "rollback", "alice", &configbutler.Rollback{}),
			slices.Concat(buildsShop[:2], builds(everyKind...)),
		},
		{"another attempt", requestAt("syncstatuses", "retry", "alice-1", retry), buildsShop},
		{"another attempt of a catalog", requestAt("syncstatuses", "retry", "shop-1", retry), nil},
		{"putting a prompt aside", requestAt("environments", "dismiss", "alice", &configbutler.Dismissal{}), nil},
		{"taking that back", requestAt("environments", "undismiss", "alice", &configbutler.Undismissal{}), nil},
		{"a look at the source", requestAt("environments", "rediscover", "alice", &configbutler.Rediscovery{}), nil},
		{"putting a record aside", requestAt("syncstatuses", "dismiss", "alice-1", &configbutler.Dismissal{}), nil},
		{"a sync of no environment", requestAt("environments", "sync", "bob", sync), nil},
		{"another attempt of no record", requestAt("syncstatuses", "retry", "bob-1", retry), nil},
		{"a sync of a catalog", requestAt("appcatalogs", "sync", "alice", &configbutler.CatalogSync{}), nil},
	}
	existing := among(catalog())
	existing.environments[0].Spec.ServiceAccountName = "syncer" // No user is allowed to act as it here.
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { asksFor(t, tt.asked, existing, tt.asks) })
	}
}

func TestNothingIsSyncedUnseen(t *testing.T) {
	retry := requestAt("syncstatuses", "retry", "alice-1", &configbutler.Retry{})
	for what, asked := range map[string]admission.Attributes{
		"catalog": request(environment(), nil, admission.Create, ""), "environment": retry, "record": retry,
		"namespace": request(environment(func(s environmentSpec) { s.CreateNamespace = true }), nil, admission.Create, ""),
	} {
		t.Run(what, func(t *testing.T) {
			references := among(catalog())
			references.fails = what
			err := pluginAmong(t, &rbac{allowed: buildsShop}, cluster(), references).Validate(t.Context(), asked, nil)
			if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry || seconds < 1 {
				t.Errorf("error = %v, want one that asks to try again", err)
			}
		})
	}
}

func TestRefusalOfAnEnvironmentNamesThePermissionsAndTheWaysOut(t *testing.T) {
	creating := environment(func(s environmentSpec) { s.CreateNamespace = true })
	allowed := slices.Concat([]string{usesCatalog}, written("alice", "deployments.apps", "horizontalpodautoscalers.autoscaling",
		"networkpolicies.networking.k8s.io"), []string{"create poddisruptionbudgets.policy alice"}, written("alice", "services"))
	err := pluginAmong(t, &rbac{allowed: allowed}, cluster(), among(catalog())).
		Validate(t.Context(), request(creating, nil, admission.Create, ""), nil)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("error = %v, want Forbidden", err)
	}
	_, text, _ := strings.Cut(err.Error(), "is forbidden: ")
	want := []string{
		`user "jane" cannot get secrets in the namespace production, which the server would copy on their behalf: ` +
			`ask for a Role in the namespace production that allows get on resource "secrets" in API group "", ` +
			`or ask the editors of AppCatalog teams/shop to share them with spec.secrets Shared`,
		`user "jane" cannot create, patch and delete configmaps, secrets and serviceaccounts in the namespace alice, ` +
			`which the server would do on their behalf: ask for a Role in the namespace alice that allows create, patch and delete ` +
			`on resources "configmaps", "secrets" and "serviceaccounts" in API group "", or, while the namespace does not exist, ` +
			`for a ClusterRole that does, or leave the environment to a user who may write in alice`,
		`user "jane" cannot patch and delete poddisruptionbudgets.policy in the namespace alice, ` +
			`which the server would do on their behalf: ask for a Role in the namespace alice that allows patch and delete ` +
			`on resource "poddisruptionbudgets" in API group "policy", or, while the namespace does not exist, ` +
			`for a ClusterRole that does, or leave the environment to a user who may write in alice`,
		`user "jane" cannot create namespaces in the whole cluster, which the server would do on their behalf: ` +
			`ask for a ClusterRole that allows create on resource "namespaces" in API group "", ` +
			`or have the namespace alice made by a user who may`,
		strings.TrimPrefix(afterGrant, "\n"),
	}
	if diff := cmp.Diff(want, strings.Split(strings.Trim(text, "[]"), "\n")); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}
