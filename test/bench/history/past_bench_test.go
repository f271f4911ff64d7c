// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/past"
)

const (
	pastFiles   = 50_000
	pastCommits = 10_000
	perFolder   = 100
)

// pastContents cache contents without a bound.
type pastContents map[gitrepo.Hash][]byte

func (c pastContents) Get(hash gitrepo.Hash) ([]byte, bool) {
	content, found := c[hash]
	return content, found
}

func (c pastContents) Put(hash gitrepo.Hash, content []byte) { c[hash] = content }

// BenchmarkPast reads one object as it was in the middle of the history of a repository of 50 000 files and 10 000 commits, served by
// git on loopback: without any cache, and again.
func BenchmarkPast(b *testing.B) {
	url := servePast(b)
	destination := &v1alpha1.GitDestination{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"},
		Spec:       v1alpha1.GitDestinationSpec{RepoRef: v1alpha1.ObjectReference{Name: "repo"}, Branch: "main", BaseFolder: "clusters/one"},
	}
	config := &v1alpha1.GitRepoConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo", UID: "repo"},
		Spec:       v1alpha1.GitRepoConfigSpec{RepoURL: url, AllowedBranches: []string{"main"}},
	}
	api, cluster := fake.NewClientset(config, destination), kubefake.NewClientset()
	options := v1alpha1.ManifestOptions{
		At: time.Unix(1_700_000_000+pastCommits/2, 0).UTC().Format(time.RFC3339), Resource: "configmaps", Namespace: "namespace-042",
		Name: "name-004250",
	}
	var first, again time.Duration
	for b.Loop() {
		reader := past.New(past.Config{
			Client: api, Cluster: cluster, Namespace: "system", Contents: pastContents{}, Clock: clock.RealClock{},
			Schemas: diff.NewSchemas(nil, clock.RealClock{}),
			Sources: mirror.NewSources(mirror.SourcesConfig{
				Client: api, Cluster: cluster, Installation: "system/slipstream", AllowInsecure: true, Memory: gitrepo.DefaultMaxMemory,
				Namespace: func(name string) (watch.Namespace, bool) { return watch.Namespace{Name: name, UID: "cluster"}, true },
			}),
		})
		read := func() time.Duration {
			began := time.Now()
			caller := access.NewReader(authorizerfactory.NewAlwaysAllowAuthorizer(), &user.DefaultInfo{Name: "jane"})
			list, err := reader.Objects(b.Context(), destination, &options, caller)
			if err != nil || len(list.Items) != 1 {
				b.Fatalf("%+v, %v", list, err)
			}
			return time.Since(began)
		}
		first, again = read(), read()
	}
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
	b.ReportMetric(float64(again.Milliseconds()), "cached-ms")
}

// servePast serves a repository of pastFiles files and pastCommits commits, one a second, each of which changes one file.
func servePast(b *testing.B) string {
	b.Helper()
	root := b.TempDir()
	repository := filepath.Join(root, "shop.git")
	git := func(input []byte, arguments ...string) string {
		b.Helper()
		command := exec.CommandContext(b.Context(), "git", arguments...)
		command.Dir, command.Stdin = root, bytes.NewReader(input)
		out, err := command.CombinedOutput()
		if err != nil {
			b.Fatalf("git %s: %v\n%s", arguments[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(nil, "init", "--quiet", "--bare", "--initial-branch=main", repository)
	git(nil, "-C", repository, "config", "uploadpack.allowFilter", "true")
	git(nil, "-C", repository, "config", "uploadpack.allowAnySHA1InWant", "true")
	git(pastStream(), "-C", repository, "fast-import", "--quiet")
	backend := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(git(nil, "--exec-path"), "git-http-backend"),
		Env:  append(os.Environ(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bench"),
	})
	b.Cleanup(backend.Close)
	return backend.URL + "/shop.git"
}

// pastStream returns the commits in the format of git fast-import.
func pastStream() []byte {
	var stream bytes.Buffer
	file := func(i, version int) {
		namespace, name := fmt.Sprintf("namespace-%03d", i/perFolder), fmt.Sprintf("name-%06d", i)
		content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  version: \"%d\"\n  text: %s\n",
			name, namespace, version, strings.Repeat("some text ", 50))
		fmt.Fprintf(&stream, "M 100644 inline clusters/one/core/v1/configmaps/%s/%s.yaml\ndata %d\n%s\n", namespace, name, len(content), content)
	}
	for commit := range pastCommits {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter bench <bench@example.com> %d +0000\ndata 6\nchange\n", 1_700_000_000+commit)
		if commit > 0 {
			file(commit*7919%pastFiles, commit)
			continue
		}
		marker := "clusterUID: cluster\nnamespace: shop\nname: main\ninstance: system/slipstream\n"
		fmt.Fprintf(&stream, "M 100644 inline clusters/one/.configbutler/owner.yaml\ndata %d\n%s\n", len(marker), marker)
		for i := range pastFiles {
			file(i, 0)
		}
	}
	return stream.Bytes()
}
