// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// named returns a list of objects, of which only the metadata is read.
func named(names ...string) map[string]any {
	items := []any{}
	for _, name := range names {
		items = append(items, map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{"name": name},
		})
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": items}
}

// completable is a cluster with names to complete.
func completable() map[string]any {
	return map[string]any{
		"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/api/v1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", SingularName: "configmap", ShortNames: []string{"cm"}, Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"list"}},
				{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
			},
		},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{
			Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.com/v1", Version: "v1"}},
			PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "example.com/v1", Version: "v1"},
		}}},
		"/apis/example.com/v1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{{Name: "coupons", Kind: "Coupon", Namespaced: true, Verbs: metav1.Verbs{"list"}}},
		},
		"/api/v1/namespaces":                           named("shop", "shop-alice", "teams"),
		"/api/v1/namespaces/shop/configmaps":           named("note", "news", "web"),
		"/api/v1/namespaces/shop/secrets":              noAccess(),
		ofGroup + "/namespaces/teams/environments":     named("bob", "alice"),
		ofGroup + "/namespaces/teams/appcatalogs":      named("production"),
		ofGroup + "/namespaces/shop/gitdestinations":   named("main"),
		ofGroup + "/namespaces/shop/changes":           named("fffff0-00000f"),
		ofGroup + "/namespaces/shop/notificationsinks": named("mail", "slack"),
		ofGroup + "/syncpipelines":                     named("assistant", "inventory"),
		ofGroup + "/namespaces/default/syncpipelines":  named("wrong"),
	}
}

func eventNames() (names []string) {
	for _, event := range v1alpha1.NotificationEvents() {
		names = append(names, string(event))
	}
	return names
}

func TestCompletion(t *testing.T) {
	s := fixed(t, completable())
	cache := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"environments":         {[]string{"missing", "-n", "teams", ""}, "alice bob :4"},
		"those with a prefix":  {[]string{"missing", "-n", "teams", "a"}, "alice :4"},
		"no second name":       {[]string{"missing", "-n", "teams", "alice", ""}, ":4"},
		"pipelines":            {[]string{"sync-pipeline", ""}, "assistant inventory :4"},
		"changes":              {[]string{"show", "-n", "shop", ""}, "fffff0-00000f :4"},
		"types":                {[]string{"log", "-n", "shop", "c"}, "configmaps/ coupons.example.com/ :6"},
		"objects":              {[]string{"log", "-n", "shop", "cm/n"}, "cm/news cm/note :4"},
		"objects after a type": {[]string{"blame", "-n", "shop", "configmap", "n"}, "news note :4"},
		"a further object":     {[]string{"restore", "-n", "shop", "cm/note", "cm/we"}, "cm/web :4"},
		"objects of no type":   {[]string{"log", "-n", "shop", "wonders/"}, ":4"},
		"namespaces":           {[]string{"log", "-n", "sh"}, "shop shop-alice :4"},
		"a flag's namespaces":  {[]string{"catalog", "x", "--from", "t"}, "teams :4"},
		"catalogs":             {[]string{"environment", "x", "-n", "teams", "--catalog", ""}, "production :4"},
		"destinations":         {[]string{"diff", "-n", "shop", "--destination", ""}, "main :4"},
		"forbidden":            {[]string{"mirror", "-n", "shop", "--secret", ""}, ":4"},
		"sinks":                {[]string{"notify", "test", "-n", "shop", "s"}, "slack :4"},
		"no second sink":       {[]string{"notify", "test", "-n", "shop", "slack", ""}, ":4"},
		"events":               {[]string{"notify", "test", "--event", ""}, strings.Join(eventNames(), " ") + " :4"},
		"tests":                {[]string{"notify", "t"}, "test Send a test message, and print it with the receiver's response :4"},
		"no files":             {[]string{"check", ""}, ":4"},
	} {
		t.Run(name, func(t *testing.T) {
			server := []string{"__complete", "--server", s.URL, "--kubeconfig", "/dev/null", "--cache-dir", cache}
			out, _, code, err := s.callExactly(t.Context(), append(server, test.args...)...)
			if got := strings.Join(strings.Fields(out), " "); code != 0 || got != test.want {
				t.Errorf("exit code %d, %v: got %q, want %q", code, err, got, test.want)
			}
		})
	}
}

// TestCompletionWithoutCluster must not fail, nor print anything into the user's command line.
func TestCompletionWithoutCluster(t *testing.T) {
	s := fixed(t, nil)
	s.Close()
	out, _, code, err := s.callExactly(t.Context(), "__complete", "--server", s.URL, "--kubeconfig", "/dev/null", "sync-pipeline", "")
	if code != 0 || out != ":4\n" {
		t.Errorf("exit code %d, %v: %q", code, err, out)
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct{ process, want []string }{
		{[]string{"kubectl-slipstream", "log", "-A"}, []string{"log", "-A"}},
		{[]string{"/usr/local/bin/kubectl-slipstream"}, []string{}},
		{[]string{"/usr/local/bin/kubectl_complete-slipstream", "lo"}, []string{"__complete", "lo"}},
		{[]string{"kubectl-create-sync.exe", "alice", "-n", "teams"}, []string{"sync", "alice", "-n", "teams"}},
		{nil, nil},
	} {
		if diff := cmp.Diff(test.want, app.Arguments(test.process)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.process, diff)
		}
	}
}

// plugin builds the plugin, and returns its path in a folder of its own.
func plugin(t *testing.T) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	built, err := programs.Product(t.Context(), root, "cmd/kubectl-slipstream")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubectl-slipstream")
	if err := os.Link(built, path); err != nil {
		content, err := os.ReadFile(built) // Another file system.
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// inBash completes the last word of a line in bash. The functions stand for those that exist only while a person presses tab.
const inBash = `
compopt() { :; }
_get_comp_words_by_ref() { cur="${COMP_WORDS[COMP_CWORD]}"; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; prev="${COMP_WORDS[COMP_CWORD-1]}"; }
source <(kubectl-slipstream completion bash)
COMP_WORDS=(kubectl-slipstream "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_kubectl-slipstream
printf '%s\n' "${COMPREPLY[@]}"
`

func TestCompletionInBash(t *testing.T) {
	s := fixed(t, completable())
	path := plugin(t)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '" + s.URL + "'}}]\n" +
		"contexts: [{name: a, context: {cluster: a, namespace: teams}}]\ncurrent-context: a\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"missing ":         "alice\nbob\n",
		"missing b":        "bob\n",
		"sync-pipeline as": "assistant\n",
		"install":          "install-hooks\n",
	} {
		command := exec.CommandContext(t.Context(), "bash", append([]string{"--norc", "-c", inBash, "bash"}, strings.Split(line, " ")...)...)
		command.Env = append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"), "KUBECONFIG="+config, "HOME="+t.TempDir())
		if out, err := command.CombinedOutput(); err != nil || strings.ReplaceAll(string(out), " ", "") != want {
			t.Errorf("%q: %v: %q, want %q", line, err, out, want)
		}
	}
}

func TestInstallHooks(t *testing.T) {
	path := plugin(t)
	dir := filepath.Dir(path)
	install := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), path, append([]string{"install-hooks"}, args...)...)
		command.Env = append(os.Environ(), "PATH="+dir+":/usr/bin:/bin", "HOME="+t.TempDir())
		out, err := command.CombinedOutput()
		return string(out), err
	}
	complete, create := filepath.Join(dir, "kubectl_complete-slipstream"), filepath.Join(dir, "kubectl-create-sync")
	if out, err := install(); err != nil || out != create+" created\n"+complete+" created\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := install(); err != nil || out != create+" unchanged\n"+complete+" unchanged\n" {
		t.Errorf("the second time: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), complete, "install").Output()
	if err != nil || !strings.HasPrefix(string(out), "install-hooks\t") || !strings.HasSuffix(string(out), ":4\n") {
		t.Errorf("%s: %v: %s", complete, err, out)
	}
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "kubectl-create-sync"), []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := install("--dir", elsewhere); err == nil || !strings.Contains(out, "kubectl-create-sync is no link to "+path+": --force replaces it") {
		t.Errorf("over another file: %v: %s", err, out)
	}
	if out, err := install("--dir", elsewhere, "--force"); err != nil || !strings.Contains(out, "only if "+elsewhere+" is in PATH") {
		t.Errorf("with --force: %v: %s", err, out)
	}
	missing := filepath.Join(elsewhere, "bin")
	if out, err := install("--dir", missing); err == nil || !strings.Contains(out, `--dir is "`+missing+`": it must be a folder that exists`) {
		t.Errorf("to a missing folder: %v: %s", err, out)
	}
}
