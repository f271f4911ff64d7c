// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/golden"
)

// TestBootstrap prints what follows a destination. test/fidelity has the definitions of Flux and Argo CD check it, and test/partners applies
// it.
func TestBootstrap(t *testing.T) {
	private := followable{
		url: "git@git.example.com:shop.git", folder: "clusters/a [b]", secrets: v1alpha1.SecretsEncrypt, credentials: true,
		selected: []v1alpha1.ResourceType{{Group: "apps", Version: "v1", Resource: "deployments"}, {Version: "v1", Resource: "pods"}},
		selectedByCluster: []v1alpha1.ResourceType{
			{Group: "batch", Version: "v1", Resource: "jobs"}, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "nodes"},
		},
	}.serve(t)
	recipients := followable{
		url: "https://git.example.com/o'neil.git", secrets: v1alpha1.SecretsEncrypt, credentials: true, recipients: []string{"age1x"},
		selected: []v1alpha1.ResourceType{{Version: "v1", Resource: "configmaps"}},
	}.serve(t)
	public := followable{url: "https://git.example.com/shop.git", secrets: v1alpha1.SecretsOmit}.serve(t)
	for name, test := range map[string]struct {
		server *requestServer
		args   string
	}{
		"flux":            {server: private, args: "flux --destination main"},
		"flux-recipients": {server: recipients, args: "flux --destination main"},
		"flux-public":     {server: public, args: "flux --destination teams/main --name shop --tool-namespace gitops --interval 1h"},
		"flux-json":       {server: recipients, args: "flux --destination main -o json"},
		"argocd":          {server: private, args: "argocd --destination main"},
		"argocd-https":    {server: recipients, args: "argocd --destination main"},
		"argocd-public":   {server: public, args: "argocd --destination teams/main --name shop --tool-namespace gitops"},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code, err := test.server.in(t, append([]string{"bootstrap"}, strings.Fields(test.args)...)...)
			if code != 0 {
				t.Errorf("exit code %d, %v", code, err)
			}
			golden.Expect(t, filepath.Join("testdata", "bootstrap", name+".txt"), out+"\nstderr:\n"+notes)
		})
	}
}

// TestBootstrapRefused checks what is not accepted.
func TestBootstrapRefused(t *testing.T) {
	server := followable{url: "https://git.example.com/shop.git", secrets: v1alpha1.SecretsOmit}.serve(t)
	for name, test := range map[string]struct{ args, want string }{
		"Flux's own name":                   {"flux --destination main --name flux-system", "--name: "},
		"a long name":                       {"flux --destination main --name " + strings.Repeat("a", 64), "longer than 63 characters"},
		"no destination":                    {"flux", "--destination is missing"},
		"another tool":                      {"fleet --destination main", `invalid argument "fleet"`},
		"a wrong name":                      {"flux --destination a/b/c", "write [NAMESPACE/]NAME"},
		"a destination that does not exist": {"flux --destination mian", `Did you mean "main"`},
		"a short interval":                  {"flux --destination main --interval 1ms", "--interval is 1ms: it is at least 1s"},
		"an interval of Argo CD":            {"argocd --destination main --interval 5m", "timeout.reconciliation"},
		"a wrong namespace":                 {"flux --destination main --tool-namespace */x", `--tool-namespace is "*/x"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code, err := server.in(t, append([]string{"bootstrap"}, strings.Fields(test.args)...)...)
			if err != nil {
				notes += err.Error()
			}
			if code != 2 || out != "" || !strings.Contains(notes, test.want) {
				t.Errorf("exit code %d, output %q, want %q in %s", code, out, test.want, notes)
			}
		})
	}
}

// TestBootstrapIgnoredFiles checks which files Flux does not fetch.
func TestBootstrapIgnoredFiles(t *testing.T) {
	for _, folder := range []string{"", "clusters/a [b]"} {
		server := followable{url: "https://git.example.com/shop.git", folder: folder, secrets: v1alpha1.SecretsOmit}.serve(t)
		out, _, _, err := server.in(t, "bootstrap", "flux", "--destination", "main")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out, "\n---\n")
		source := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(first), &source.Object); err != nil {
			t.Fatal(err)
		}
		patterns, _, _ := unstructured.NestedString(source.Object, "spec", "ignore")
		for path, want := range map[string]bool{
			".configbutler/owner.yaml": true, "configbutler.ai/v1alpha1/watchrules/shop/all.yaml": true, "core/v1/nodes/one.yaml": true,
			"storage.k8s.io/v1/csinodes/one.yaml": true, "core/v1/configmaps/kube-system/extension-apiserver-authentication.yaml": true,
			"core/v1/namespaces/kube-public.yaml": true, "core/v1/secrets/flux-system/flux-system.yaml": true,
			"apiextensions.k8s.io/v1/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io.yaml": true,
			"rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-reconciler-flux-system.yaml":            true,
			"rbac.authorization.k8s.io/v1/clusterroles/slipstream-view.yaml":                                  true,
			"apiextensions.k8s.io/v1/customresourcedefinitions/gauges.example.com.yaml":                       false,
			"rbac.authorization.k8s.io/v1/roles/shop/shop-flux-system.yaml":                                   false,
			"core/v1/configmaps/shop/kube-x.yaml":                                                             false, "core/v1/namespaces/shop.yaml": false, "core/v1/secrets/shop/db.yaml": false,
			"rbac.authorization.k8s.io/v1/clusterroles/kube-x.yaml": false, "storage.k8s.io/v1/storageclasses/fast.yaml": false,
			"kube-green.com/v1/sleepinfos/shop/night.yaml": false,
		} {
			if got := ignored(patterns, filepath.Join(folder, path)); got != want {
				t.Errorf("folder %q: %s is ignored: %t, want %t", folder, path, got, want)
			}
		}
	}
}

// ignored reports whether the matcher of Flux ignores a file.
func ignored(patterns, path string) bool {
	var parsed []gitignore.Pattern
	for line := range strings.Lines(patterns) {
		parsed = append(parsed, gitignore.ParsePattern(strings.TrimSuffix(line, "\n"), nil))
	}
	return gitignore.NewMatcher(parsed).Match(strings.Split(path, "/"), false)
}

// everywhere is the path of the objects of all namespaces.
const everywhere = "/apis/configbutler.ai/v1alpha1/"

// followable is the destination main, of the repository shop, in the namespace teams.
type followable struct {
	url, folder string
	secrets     v1alpha1.SecretsPolicy
	credentials bool
	recipients  []string
	// selected are the types that a WatchRule and a ClusterWatchRule select.
	selected, selectedByCluster []v1alpha1.ResourceType
}

func (f followable) serve(t *testing.T) *requestServer {
	t.Helper()
	repository := v1alpha1.GitRepoConfigSpec{RepoURL: f.url, AllowedBranches: []string{"live"}}
	if f.credentials {
		repository.SecretRef = &v1alpha1.SecretReference{Name: "git"}
	}
	destination := v1alpha1.GitDestinationSpec{
		RepoRef: v1alpha1.ObjectReference{Name: "shop"}, Branch: "live", BaseFolder: f.folder, Secrets: f.secrets,
	}
	if f.selectedByCluster != nil {
		destination.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: true}
	}
	if f.recipients != nil {
		destination.Encryption = &v1alpha1.Encryption{AgeRecipients: f.recipients}
	}
	other := v1alpha1.WatchRule{ObjectMeta: objectMeta("other", nil), Spec: v1alpha1.WatchRuleSpec{DestinationRef: v1alpha1.ObjectReference{Name: "other"}}}
	other.Status.MatchedResourceTypes = []v1alpha1.ResourceType{{Version: "v1", Resource: "persistentvolumes"}}
	rule := v1alpha1.WatchRule{ObjectMeta: objectMeta("all", nil), Spec: v1alpha1.WatchRuleSpec{DestinationRef: v1alpha1.ObjectReference{Name: "main"}}}
	rule.Status.MatchedResourceTypes = f.selected
	clusterRule := v1alpha1.ClusterWatchRule{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	clusterRule.Spec.DestinationRef.Namespace, clusterRule.Spec.DestinationRef.Name = "teams", "main"
	clusterRule.Status.MatchedResourceTypes = f.selectedByCluster
	answers := map[string]any{
		everywhere + "watchrules":        &v1alpha1.WatchRuleList{TypeMeta: typeMeta("WatchRuleList"), Items: []v1alpha1.WatchRule{other, rule}},
		everywhere + "clusterwatchrules": &v1alpha1.ClusterWatchRuleList{TypeMeta: typeMeta("ClusterWatchRuleList"), Items: []v1alpha1.ClusterWatchRule{clusterRule}},
	}
	return serveRequests(t, map[string][]any{
		ofTeams + "gitdestinations/main": {&v1alpha1.GitDestination{
			TypeMeta: typeMeta("GitDestination"), ObjectMeta: objectMeta("main", nil), Spec: destination,
		}},
		ofTeams + "gitrepoconfigs/shop": {&v1alpha1.GitRepoConfig{TypeMeta: typeMeta("GitRepoConfig"), ObjectMeta: objectMeta("shop", nil), Spec: repository}},
	}, answers)
}
