// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// applied is a request that applies an object.
type applied struct{ path, query, body string }

// applyServer accepts every object that is applied, or answers with a status.
type applyServer struct {
	*server
	applied []applied
	// objects are those that may be read, by path. An object that is nil does not exist.
	objects map[string]any
	// refuses returns the status of an object that is not accepted, nil if it is.
	refuses func(path string) *metav1.Status
}

func serveApply(t *testing.T, status *metav1.Status) *applyServer {
	t.Helper()
	s := &applyServer{server: &server{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			s.read(w, r.URL.Path)
			return
		}
		if s.refuses != nil && status == nil {
			if refused := s.refuses(r.URL.Path); refused != nil {
				refuse(w, &apierrors.StatusError{ErrStatus: *refused})
				return
			}
		}
		if err != nil || r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if status != nil {
			refuse(w, &apierrors.StatusError{ErrStatus: *status})
			return
		}
		s.applied = append(s.applied, applied{r.URL.Path, r.URL.RawQuery, string(body)})
		_, _ = w.Write(body) // The test sees what arrives.
	}))
	t.Cleanup(s.Close)
	return s
}

// read answers with an object. Without one, reading it is forbidden.
func (s *applyServer) read(w http.ResponseWriter, path string) {
	object, known := s.objects[path]
	switch {
	case !known:
		refuse(w, apierrors.NewForbidden(schema.GroupResource{}, path, io.EOF))
	case object == nil:
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, path))
	default:
		_ = json.NewEncoder(w).Encode(object)
	}
}

// served are the responses to discovery of some types.
func served() map[string]any {
	list := func(version string, resources ...metav1.APIResource) metav1.APIResourceList {
		return metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version, APIResources: resources,
		}
	}
	apps := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
	return map[string]any{
		"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{
			{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{apps}, PreferredVersion: apps},
		}},
		"/api/v1": list("v1", metav1.APIResource{Name: "services", SingularName: "service", Kind: "Service", ShortNames: []string{"svc"}, Namespaced: true},
			metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}),
		"/apis/apps/v1": list("apps/v1", metav1.APIResource{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true}),
	}
}

// TestCreatorsNeed checks that nothing is applied without what the objects need, and that what may not be read is taken to exist.
func TestCreatorsNeed(t *testing.T) {
	mirror := []string{"mirror", "-n", "shop", "--to", toProduction, "--apply"}
	namespaces := map[string]any{
		"/api/v1/namespaces/shpo": nil,
		"/api/v1/namespaces": map[string]any{"apiVersion": "v1", "kind": "NamespaceList", "items": []any{
			map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}},
		}},
	}
	for name, test := range map[string]struct {
		args    []string
		objects map[string]any
		want    string
	}{
		"the Secret": {
			append(mirror, "--secret", "nope"), map[string]any{"/api/v1/namespaces/shop/secrets/nope": nil},
			"--secret: there is no Secret nope in the namespace shop. Create it, and have an administrator allow the server to read it with the " +
				"chart's value credentials: {shop: [nope]}:\n  kubectl create secret generic nope -n shop --from-literal=username=NAME --from-literal=password=TOKEN",
		},
		"the Secret of a pipeline": {
			[]string{"pipeline", "a", "--to", "https://a.example.com", "--secret", "tools/nope", "--apply"},
			map[string]any{"/api/v1/namespaces/tools/secrets/nope": nil}, "kubectl create secret generic nope -n tools --from-literal=token=TOKEN",
		},
		"a type in the singular":      {append(mirror, "--types", "services,deployment"), served(), "no type \"deployment\": types are written in the plural, as in deployments.apps\nDid you mean \"deployments.apps\"?"},
		"a misspelt type":             {append(mirror, "--types", "svcs"), served(), "Did you mean \"services\"?"},
		"a type of another group":     {append(mirror, "--types", "deployments.example.com"), served(), "Did you mean \"deployments.apps\"?"},
		"a type like no other":        {append(mirror, "--types", "wonderful"), served(), "kubectl api-resources lists those that exist"},
		"types":                       {append(mirror, "--types", "services,deployments.apps,deployments"), served(), ""},
		"all types":                   {append(mirror, "--types", "*"), served(), ""},
		"types that may not be read":  {append(mirror, "--types", "deployment", "--secret", "nope"), nil, ""},
		"the namespace":               {[]string{"catalog", "a", "-n", "teams", "--from", "shpo", "--apply"}, namespaces, "--from: there is no namespace shpo\nDid you mean \"shop\"?"},
		"a namespace that is foreign": {[]string{"catalog", "a", "-n", "teams", "--from", "shop", "--apply"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveApply(t, nil)
			s.objects = test.objects
			_, _, code, err := s.call(t.Context(), append(slices.Clone(test.args), "--cache-dir", t.TempDir())...)
			if test.want == "" && (code != 0 || len(s.applied) == 0) {
				t.Errorf("exit code %d, %v, applied %d", code, err, len(s.applied))
			}
			if test.want != "" && (code != 2 || err == nil || !strings.Contains(err.Error(), test.want) || len(s.applied) > 0) {
				t.Errorf("exit code %d, applied %d: %v", code, len(s.applied), err)
			}
		})
	}
}

// TestMirrorConflicts checks that nothing is stored if one of the objects is that of others.
func TestMirrorConflicts(t *testing.T) {
	s := serveApply(t, nil)
	s.refuses = func(path string) *metav1.Status {
		if !strings.Contains(path, "/gitdestinations/") {
			return nil
		}
		return &apierrors.NewApplyConflict(nil, "conflict with \"kubectl\": .spec.baseFolder").ErrStatus
	}
	out, notes, code, err := s.call(t.Context(), "mirror", "-n", "shop", "--to", toProduction, "--apply")
	const want = "GitDestination production exists, and others have set fields of it: give the objects another name with --name, and the mirror " +
		"another folder with --folder: conflict with \"kubectl\""
	if code != 4 || err == nil || !strings.Contains(err.Error(), want) || out+notes != "" {
		t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, notes)
	}
	for _, each := range s.applied {
		if !strings.Contains(each.query, "dryRun=All") {
			t.Errorf("%s is stored", each.path)
		}
	}
}

const mirrorManifests = `apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata:
  name: production
  namespace: shop
spec:
  allowedBranches:
  - main
  repoUrl: https://git.example.com/production.git
  secretRef:
    name: shop-git
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata:
  name: production
  namespace: shop
spec:
  baseFolder: shop
  branch: main
  repoRef:
    name: production
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata:
  name: production
  namespace: shop
spec:
  destinationRef:
    name: production
  rules:
  - name: desired-state
`

// object returns the manifest of an object.
func object(kind, metadata, spec string) string {
	return "apiVersion: configbutler.ai/v1alpha1\nkind: " + kind + "\nmetadata:\n" + metadata + "spec:\n" + spec
}

const toProduction = "https://git.example.com/production.git"

func TestCreatorsPrint(t *testing.T) {
	const alice, ofTeams = "  name: alice\n  namespace: teams\n", "  name: production\n  namespace: teams\n"
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a mirror": {[]string{"mirror", "-n", "shop", "--to", toProduction, "--secret", "shop-git"}, mirrorManifests},
		"a catalog of all": {
			[]string{"catalog", "production", "-n", "teams", "--from", "shop"},
			object("AppCatalog", ofTeams, "  sourceNamespace: shop\n  workloadSelector: {}\n"),
		},
		"a catalog of two": {
			[]string{"catalog", "production", "-n", "teams", "--from", "shop", "--workloads", "deploy/web,cronjobs.batch/report"},
			object("AppCatalog", ofTeams, "  sourceNamespace: shop\n  workloads:\n  - kind: Deployment\n    name: web\n  - kind: CronJob\n    name: report\n"),
		},
		"a catalog of a label": {
			[]string{"catalog", "production", "-n", "teams", "--from", "shop", "-l", "app=web,tier!=test"},
			object("AppCatalog", ofTeams, "  sourceNamespace: shop\n  workloadSelector:\n    matchExpressions:\n    - key: tier\n      operator: NotIn\n"+
				"      values:\n      - test\n    matchLabels:\n      app: web\n"),
		},
		"an environment": {
			[]string{"environment", "alice", "-n", "teams", "--catalog", "production", "--target", "shop-alice"},
			object("Environment", alice, "  catalogRef:\n    name: production\n  targetNamespace: shop-alice\n"),
		},
		"an environment that follows": {
			[]string{
				"environment", "alice", "-n", "teams", "--catalog", "shop/production", "--target", "shop-alice", "--auto", "--create-namespace", "--ttl", "72h",
			},
			object("Environment", alice, "  autoSync: true\n  catalogRef:\n    name: production\n    namespace: shop\n  createNamespace: true\n"+
				"  targetNamespace: shop-alice\n  ttl: 72h0m0s\n"),
		},
		"a branch": {
			[]string{"environment", "alice", "-n", "teams", "--catalog", "production", "--target", "shop-alice", "--branch", "deploy/web"},
			object("Environment", alice, "  branchWorkloads:\n  - kind: Deployment\n    name: web\n  catalogRef:\n    name: production\n"+
				"  targetNamespace: shop-alice\n  type: Branch\n"),
		},
		"a pipeline": {
			[]string{"pipeline", "inventory", "--to", "https://inventory.example.com", "--types", "services", "--format", "dotai", "--secret", "tools/key"},
			object("SyncPipeline", "  name: inventory\n", "  instances:\n    resources:\n    - services\n  sinks:\n  - http:\n      format: DotAI\n"+
				"      secretRef:\n        name: key\n        namespace: tools\n      url: https://inventory.example.com\n    name: inventory\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveApply(t, nil)
			out, notes, code, err := s.call(t.Context(), test.args...)
			if diff := cmp.Diff(test.want, out); code != 0 || diff != "" || notes != "" || len(s.applied) > 0 {
				t.Errorf("exit code %d, %v, notes %q, %d requests (-want +got):\n%s", code, err, notes, len(s.applied), diff)
			}
		})
	}
}

func TestMirrorNames(t *testing.T) {
	for _, test := range []struct{ url, name string }{
		{"https://git.example.com/teams/Shop_Production.git/", "shop-production"},
		{"git@git.example.com:shop.git", "shop"},
		{"ssh://git@git.example.com:2222/shop", "shop"},
		{"https://git.example.com/" + strings.Repeat("a", 62) + "-b", strings.Repeat("a", 62)},
	} {
		s := serveApply(t, nil)
		out, _, code, err := s.call(t.Context(), "mirror", "-n", "shop", "--to", test.url, "--secret", "git", "-o", "name")
		want := "gitrepoconfig.configbutler.ai/" + test.name + "\ngitdestination.configbutler.ai/" + test.name + "\nwatchrule.configbutler.ai/" + test.name + "\n"
		if code != 0 || out != want {
			t.Errorf("%s: exit code %d, %v: %s", test.url, code, err, out)
		}
	}
}

func TestMirrorApplies(t *testing.T) {
	s := serveApply(t, nil)
	out, notes, code, err := s.call(t.Context(), "mirror", "-n", "shop", "--to", toProduction, "--secret", "shop-git", "--apply")
	want := "gitrepoconfig.configbutler.ai/production serverside-applied\ngitdestination.configbutler.ai/production serverside-applied\n" +
		"watchrule.configbutler.ai/production serverside-applied\n"
	wantNotes := "Next: kubectl wait gitrepoconfig/production gitdestination/production watchrule/production -n shop --for=condition=Ready\n"
	if code != 0 || out != want || notes != wantNotes || len(s.applied) != 6 {
		t.Fatalf("exit code %d, %v, %d requests: %s%s", code, err, len(s.applied), out, notes)
	}
	for i, document := range strings.Split(mirrorManifests, "---\n") {
		body, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		got := s.applied[3+i]
		if diff := cmp.Diff(string(body), strings.TrimSpace(got.body)); diff != "" || got.query != "fieldManager=kubectl-slipstream&force=false" ||
			!strings.HasPrefix(got.path, "/apis/configbutler.ai/v1alpha1/namespaces/shop/") || s.applied[i].path != got.path ||
			s.applied[i].query != "dryRun=All&"+got.query {
			t.Errorf("%s?%s (-want +got):\n%s", got.path, got.query, diff)
		}
	}
}

// TestEnvironmentNext checks what is suggested after an Environment: a sync, unless it follows the catalog by itself.
func TestEnvironmentNext(t *testing.T) {
	for next, flags := range map[string][]string{
		"Next: kubectl slipstream sync alice -n teams\n": nil, "Next: kubectl slipstream status -w -n teams\n": {"--auto"},
	} {
		s := serveApply(t, nil)
		arguments := []string{"environment", "alice", "-n", "teams", "--catalog", "production", "--target", "shop-alice", "--apply"}
		_, notes, code, err := s.call(t.Context(), append(arguments, flags...)...)
		if code != 0 || notes != next {
			t.Errorf("%v: exit code %d, %v: %s", flags, code, err, notes)
		}
	}
}

func TestCreatorsDryRun(t *testing.T) {
	s := serveApply(t, nil)
	out, notes, code, err := s.call(t.Context(), "mirror", "-n", "shop", "--to", toProduction, "--apply", "--dry-run")
	if code != 0 || notes != "" || strings.Count(out, "serverside-applied (server dry run)\n") != 3 {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, notes)
	}
	if slices.ContainsFunc(s.applied, func(a applied) bool { return !strings.Contains(a.query, "dryRun=All") }) {
		t.Errorf("requests without dryRun: %+v", s.applied)
	}
}

func TestCreatorsAreRefused(t *testing.T) {
	resource := v1alpha1.Resource("gitrepoconfigs")
	forbidden := apierrors.NewForbidden(resource, "production", io.EOF).Status()
	conflict := apierrors.NewApplyConflict(nil, "conflict with \"helm\": .spec.repoUrl").Status()
	for want, status := range map[int]*metav1.Status{5: &forbidden, 4: &conflict} {
		s := serveApply(t, status)
		out, _, code, err := s.call(t.Context(), "mirror", "-n", "shop", "--to", toProduction, "--apply")
		if code != want || err == nil || out != "" {
			t.Errorf("exit code %d, want %d, %v: %s", code, want, err, out)
		}
	}
}

func TestCreatorsRejectInput(t *testing.T) {
	mirror := []string{"mirror", "-n", "shop", "--to"}
	catalog := []string{"catalog", "production", "-n", "teams"}
	environment := []string{"environment", "alice", "-n", "teams"}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no URL":         {[]string{"mirror"}, []string{"--to is missing"}},
		"SSH, no Secret": {append(mirror, "git@git.example.com:shop.git"), []string{"--secret is missing: access by SSH"}},
		"no name":        {append(mirror, "https://git.example.com/---"), []string{"--name is missing"}},
		"several at once": {
			append(mirror, "https://jane:secret@git.example.com/a", "--branch", "a..b", "--folder", "../x", "--types", "Foo/bar"),
			[]string{"--to: GitRepoConfig a: spec.repoUrl", "--branch: GitRepoConfig a: spec.allowedBranches[0]", "--branch: GitDestination a: spec.branch", "--folder: GitDestination a: spec.baseFolder", "--types: WatchRule a: spec.rules"},
		},
		"a dry run without --apply": {append(mirror, toProduction, "--dry-run"), []string{"add --apply"}},
		"another dry run":           {append(mirror, toProduction, "--apply", "--dry-run=client"), []string{"it is none or server"}},
		"another format":            {append(mirror, toProduction, "-o", "table"), []string{"table"}},
		"no source":                 {catalog, []string{"--from is missing"}},
		"a workload without kind":   {append(catalog, "--from", "shop", "--workloads", "web"), []string{"write KIND/NAME"}},
		"another kind":              {append(catalog, "--from", "shop", "--workloads", "pod/web"), []string{`--workloads: "pod/web" is no workload: write KIND/NAME with cronjob, daemonset, deployment, job`}},
		"another selector":          {append(catalog, "--from", "shop", "-l", "a in"), []string{"--selector is"}},
		"no catalog":                {environment, []string{"--catalog is missing"}},
		"no target":                 {append(environment, "--catalog", "production"), []string{"--target is missing"}},
		"a short time":              {append(environment, "--catalog", "production", "--target", "x", "--ttl", "1s"), []string{"--ttl: Environment alice: spec.ttl"}},
		"a branch without kind": {
			append(environment, "--catalog", "production", "--target", "x", "--branch", "web"), []string{`--branch: "web" is no workload: write KIND/NAME`},
		},
		"a name with a dot":        {[]string{"pipeline", "a.b", "--to", "https://a.example.com"}, []string{"NAME: SyncPipeline a.b: metadata.name"}},
		"another API":              {[]string{"pipeline", "a", "--to", "https://a.example.com", "--format", "x"}, []string{"--format: SyncPipeline a"}},
		"a Secret of no namespace": {[]string{"pipeline", "a", "--to", "https://a.example.com", "--secret", "x"}, []string{"write NAMESPACE/NAME"}},
		"no receiver":              {[]string{"pipeline", "a"}, []string{"--to is missing"}},
		"two names":                {[]string{"pipeline", "a", "b"}, []string{"accepts 1 arg"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveApply(t, nil)
			out, _, code, err := s.call(t.Context(), slices.Clone(test.args)...)
			for _, want := range test.want {
				if code != 2 || err == nil || !strings.Contains(err.Error(), want) || out != "" || len(s.applied) > 0 {
					t.Errorf("exit code %d, no %q in %v: %s", code, want, err, out)
				}
			}
			if err != nil && strings.Contains(err.Error(), "jane:secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}
