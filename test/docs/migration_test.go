// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	migrationPage = "docs/migrating-from-gitops-reverser.md"
	// installing is the heading after which readers install Slipstream without the blocks of the page.
	installing = "\n### 5. "
	// automanaged is the label of APIServices that kube-apiserver creates for CustomResourceDefinitions.
	automanaged = "kube-aggregator.kubernetes.io/automanaged"
)

// reverser is a cluster with the CustomResourceDefinitions and objects of gitops-reverser, and a branch with its files.
type reverser struct {
	cluster *devcluster.Cluster
	admin   devcluster.Kubectl
	program string
	data    string
}

func newReverser(t *testing.T) *reverser {
	t.Helper()
	root := moduleRoot(t)
	program := clustertest.Program(t, "cmd/slipstream")
	cluster := clustertest.Start(t, devcluster.Options{ServerProgram: program, Audit: true, ServerArgs: []string{longestWait}})
	return &reverser{
		cluster: cluster, admin: cluster.Kubectl(cluster.Admin()), program: program,
		data: filepath.Join(root, "test/docs/testdata/gitops-reverser"),
	}
}

// TestMovingFromGitOpsReverser checks the statements of the page about both in one cluster, and then follows the page.
func TestMovingFromGitOpsReverser(t *testing.T) {
	t.Parallel()
	r := newReverser(t)
	_ = t.Run("the same version", r.sameVersion) && t.Run("another version", r.anotherVersion) && t.Run("the page", r.followPage)
}

// sameVersion checks that kube-apiserver restores its APIService of a version with CustomResourceDefinitions.
func (r *reverser) sameVersion(t *testing.T) {
	r.define(t, "v1alpha1")
	r.eventually(t, "kube-apiserver registers an available APIService", func(ctx context.Context) error {
		_, err := r.admin.Run(ctx, "wait", "apiservice", devcluster.APIServiceName, "--for=condition=Available")
		return err
	})
	ours := `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: ` + devcluster.APIServiceName + `}, spec: {
		group: configbutler.ai, version: v1alpha1, groupPriorityMinimum: 1000, versionPriority: 100, insecureSkipTLSVerify: true,
		service: {namespace: slipstream-system, name: slipstream}}}`
	if out := r.feed(t, ours, "apply", "-f", "-"); !strings.Contains(out, "configured") {
		t.Errorf("apply of an APIService printed %q", out)
	}
	r.eventually(t, "kube-apiserver restores its APIService and serves the definitions", func(ctx context.Context) error {
		out, err := r.admin.Run(ctx, "get", "apiservice", devcluster.APIServiceName, "-o", "jsonpath={.metadata.labels}{.spec.service}")
		if err != nil || out != `{"`+automanaged+`":"true"}` {
			return errors.Join(err, errors.New("APIService: "+out))
		}
		_, err = r.admin.Run(ctx, "get", "--raw", "/apis/configbutler.ai/v1alpha1/gittargets")
		return err
	})
	r.wantRefusal(t)

	r.kubectl(t, "delete", "crd", "-l", "test=reverser", "--timeout=10m")
	r.kubectl(t, "wait", "--for=delete", "apiservice/"+devcluster.APIServiceName, "--timeout=10m")
}

// wantRefusal expects helm and slipstream check to report the conflict with the words of the page, and helm to create nothing.
func (r *reverser) wantRefusal(t *testing.T) {
	t.Helper()
	root := moduleRoot(t)
	message := refusal.FindString(readFile(t, filepath.Join(root, migrationPage)))
	for _, tool := range []programs.Tool{programs.Helm, programs.Helm3} {
		helm, err := tool.Build(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range [][]string{{"install"}, {"upgrade", "--install"}} {
			arguments := slices.Concat(how, []string{"slipstream", filepath.Join(root, "charts/slipstream"), "-n", "refused", "--create-namespace"})
			out, code := r.outcome(t, helm, arguments...)
			if code == 0 || !strings.HasSuffix(strings.TrimSpace(out), message) {
				t.Errorf("%v exited with %d without %q:\n%s", arguments, code, message, out)
			}
		}
	}
	if releases := r.kubectl(t, "get", "secrets", "-A", "-l", "owner=helm", "-o", "name"); releases != "" {
		t.Errorf("helm created the releases %q", releases)
	}
	if _, err := r.admin.Run(t.Context(), "get", "namespace", "refused"); err == nil {
		t.Error("helm created the namespace")
	}
	out, code := r.outcome(t, r.program, "check", "--namespace="+devcluster.ServerNamespace, "--timeout=0s")
	if code != 1 || !strings.Contains(out, "served by CustomResourceDefinitions") {
		t.Errorf("slipstream check exited with %d, want 1:\n%s", code, out)
	}
}

// refusal matches the error of helm in the page.
var refusal = regexp.MustCompile(`(?m)^the API configbutler\.ai/v1alpha1 is served by .*$`)

// outcome runs a program with the cluster, and returns its output and exit code.
func (r *reverser) outcome(t *testing.T, program string, arguments ...string) (string, int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append(arguments, "--kubeconfig="+r.cluster.Env(devcluster.EnvKubeconfig))...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// anotherVersion checks another version with its own APIService. Discovery prefers the newer one, also in namespace deletion.
func (r *reverser) anotherVersion(t *testing.T) {
	if err := r.cluster.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.define(t, "v1alpha3")
	r.kubectl(t, "create", "namespace", "both")
	const rules = `
apiVersion: configbutler.ai/v1alpha3
kind: WatchRule
metadata: {name: theirs, namespace: both}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: ours, namespace: both}
spec: {destinationRef: {name: mirror}, rules: [{name: all}]}
`
	r.eventually(t, "discovery has both kinds", func(ctx context.Context) error {
		_, err := r.admin.Feed(ctx, rules, "apply", "-f", "-")
		return err
	})
	const full = "watchrules.v1alpha1.configbutler.ai"
	r.eventually(t, "watchrules are those of gitops-reverser, and ours have their full name", func(ctx context.Context) error {
		theirs, err := r.admin.Run(ctx, "get", "watchrules", "-A", "-o", "name")
		if err != nil {
			return err
		}
		ours, err := r.admin.Run(ctx, "get", full, "-A", "-o", "name")
		if err == nil && (strings.TrimSpace(theirs) != "watchrule.configbutler.ai/theirs" || !strings.Contains(ours, "/ours")) {
			err = fmt.Errorf("theirs: %q, ours: %q", theirs, ours)
		}
		return err
	})
	r.kubectl(t, "delete", "namespace", "both", "--timeout=10m")
	if out := r.kubectl(t, "get", full, "-A", "-o", "name"); !strings.Contains(out, "/ours") {
		t.Errorf("WatchRules were deleted with their namespace, unlike the page message: %q", out)
	}

	r.kubectl(t, "delete", "-n", "both", full, "ours")
	r.kubectl(t, "delete", "apiservice", devcluster.APIServiceName)
	if err := r.cluster.StopServer(t.Context(), stopSignal); err != nil {
		t.Fatal(err)
	}
}

func (r *reverser) followPage(t *testing.T) {
	r.install(t)
	root := moduleRoot(t)
	blocks := shellBlocks(t, root, migrationPage)
	first, _, found := strings.Cut(readFile(t, filepath.Join(root, migrationPage)), installing)
	if !found {
		t.Fatalf("%s: no heading %q", migrationPage, installing)
	}
	until := strings.Count(first, "\n```"+languageShell+"\n")

	reader := newReader(t, strings.NewReplacer())
	if err := os.Symlink(filepath.Join(root, "artifacts/gitops-reverser"),
		filepath.Join(reader.folder, "artifacts/gitops-reverser")); err != nil {
		t.Fatal(err)
	}
	reader.setenv(t, r.cluster.Environ()...)
	reader.setenv(t, "PATH="+filepath.Dir(r.cluster.Env(devcluster.EnvKubectl))+":/usr/local/bin:/usr/bin:/bin",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=user",
		"GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=user@example.com")
	reader.follow(t, blocks[:until])
	if err := r.cluster.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader.follow(t, blocks[until:])
}

// define applies the CustomResourceDefinitions of a version.
func (r *reverser) define(t *testing.T, version string) {
	t.Helper()
	template := readFile(t, filepath.Join(r.data, "definition.yaml"))
	var manifests strings.Builder
	for plural, kind := range map[string]string{
		"clusterproviders": "ClusterProvider", "gitproviders": "GitProvider", "gittargets": "GitTarget",
		"watchrules": "WatchRule", "clusterwatchrules": "ClusterWatchRule", "commitrequests": "CommitRequest",
	} {
		scope := "Namespaced"
		if strings.HasPrefix(kind, "Cluster") {
			scope = "Cluster"
		}
		manifests.WriteString(strings.NewReplacer("${PLURAL}", plural, "${KIND}", kind, "${SCOPE}", scope, "${VERSION}", version).
			Replace(template) + "\n---\n")
	}
	r.feed(t, manifests.String(), "apply", "-f", "-")
	r.kubectl(t, "wait", "crd", "-l", "test=reverser", "--for=condition=Established", "--timeout=10m")
}

// install creates the objects of gitops-reverser, the objects that it mirrors, and the branch as it leaves it.
func (r *reverser) install(t *testing.T) {
	t.Helper()
	r.kubectl(t, "create", "namespace", "shop")
	for _, file := range []string{"installed.yaml", "mirrored.yaml", "objects.yaml"} {
		content := os.Expand(readFile(t, filepath.Join(r.data, file)), r.cluster.Env)
		r.feed(t, content, "apply", "-f", "-")
	}
	const push = `cp -r "$1/." . && git init -q -b main . && git add . &&
git -c user.name=reverser -c user.email=reverser@example.com commit -q -m 'chore: sync 6 resources' && git push -q "$2" main`
	command := exec.CommandContext(t.Context(), "bash", "-c", push, "bash",
		filepath.Join(r.data, "branch"), r.cluster.Env(devcluster.EnvGitURL)+"/shop.git")
	command.Dir = t.TempDir()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (r *reverser) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	return r.feed(t, "", arguments...)
}

func (r *reverser) feed(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	out, err := r.admin.Feed(t.Context(), input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *reverser) eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	testkit.EventuallyWithin(t, deadline, what, check)
}
