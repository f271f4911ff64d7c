// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// TestVersions runs plugins of several versions with a server that is v0.2.0 and lacks a request that the plugins know: changes/diff.
func TestVersions(t *testing.T) {
	t.Parallel()
	server := versionOf(t, "cmd/slipstream", "v0.2.0", programs.Replacement{
		File: "pkg/registry/storage.go", Old: `storage.Endpoints["changes/diff"] = &changeDiffREST{changes: changes, past: config.Past}`, New: "_ = changes",
	})
	s := newTestCluster(t, devcluster.Options{ServerProgram: server})
	const namespace = "versions"
	s.Run(t, "create", "namespace", namespace)
	vera := people.New(t, s.Cluster, "vera")
	s.Apply(t, people.In(namespace, "admin", vera.Name))
	for version, said := range map[string]string{
		"v0.1.0": "ok    version: server v0.2.0, plugin v0.1.0\n",
		"v0.3.1": "ok    version: server v0.2.0, plugin v0.3.1\n",
		"v0.4.0": "warn  version: server v0.2.0, plugin v0.4.0: more than one minor version apart\n",
		"v1.2.0": "warn  version: server v0.2.0, plugin v1.2.0: more than one minor version apart\n",
	} {
		plugin := devcluster.Kubectl{User: vera.Kubectl.User, Program: versionOf(t, "cmd/kubectl-slipstream", version)}
		if out, err := plugin.Run(t.Context(), "check", "-n", namespace); err != nil || !strings.Contains(out, said) {
			t.Errorf("check by %s: %v, want %q:\n%s", version, err, said, out)
		}
		// The commit follows the version if the plugin is built from a work tree.
		out, err := plugin.Run(t.Context(), "version")
		if err != nil || !strings.HasPrefix(out, "Plugin: "+version) || !strings.HasSuffix(out, "\nServer: v0.2.0\n") {
			t.Errorf("version of %s: %v: %s", version, err, out)
		}
		s.testVersion(t, plugin, namespace, strings.ReplaceAll(version, ".", "-"))
	}
}

// testVersion mirrors a ConfigMap with a plugin, finds its change, and asks for what the server lacks.
func (s *testCluster) testVersion(t *testing.T, plugin devcluster.Kubectl, namespace, name string) {
	t.Helper()
	repository := s.Env(devcluster.EnvGitURL) + "/" + name + ".git"
	_, err := plugin.Run(t.Context(), "mirror", "-n", namespace, "--to", repository, "--types", "configmaps", "--name", name, "--apply")
	must(t, err)
	s.Run(t, "create", "configmap", name, "-n", namespace)
	var change string
	mirrortest.Eventually(t, "the change is listed", func(ctx context.Context) error {
		out, err := plugin.Run(ctx, "log", "configmap/"+name, "-n", namespace)
		if err == nil && !strings.Contains(out, "ConfigMap/"+name) {
			err = fmt.Errorf("no change: %s", out)
		}
		if err == nil {
			rows := strings.Fields(out)
			change = rows[len(rows)-1]
		}
		return err
	})
	_, err = plugin.Run(t.Context(), "show", change, "-n", namespace)
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "it is older than the plugin") {
		t.Errorf("show: %v", err)
	}
}

// versionOf builds a program as another version of it.
func versionOf(t *testing.T, path, version string, replacements ...programs.Replacement) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	must(t, err)
	program, err := programs.Variant(t.Context(), root, path, t.TempDir(), append(replacements, programs.Replacement{
		File: "pkg/kube/buildversion/buildversion.go", Old: `return cmp.Or(info.Main.Version, "(devel)")`,
		New: fmt.Sprintf("return cmp.Or(%q, info.Main.Version)", version),
	})...)
	must(t, err)
	return program
}
