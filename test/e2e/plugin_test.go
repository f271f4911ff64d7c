// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// firstSteps lets an ordinary user mirror a namespace with the plugin alone.
func firstSteps(t *testing.T, s *testCluster) {
	const namespace = "first-steps"
	s.Run(t, "create", "namespace", namespace)
	paula := people.New(t, s.Cluster, "paula")
	s.Apply(t, people.In(namespace, "admin", paula.Name))
	plugin := s.plugin(t, paula.Kubectl)
	args := []string{
		"mirror", "-n", namespace, "--to", s.Env(devcluster.EnvGitURL) + "/first-steps.git", "--folder", "clusters/test", "--types", "configmaps,services",
	}
	manifests, err := plugin.Run(t.Context(), args...)
	must(t, err)
	if out, err := plugin.Run(t.Context(), append(args, "--apply", "--dry-run=server")...); err != nil || strings.Count(out, "(server dry run)") != 3 {
		t.Errorf("%v: %s", err, out)
	}
	_, err = paula.Kubectl.Run(t.Context(), "get", "gitrepoconfig/first-steps", "-n", namespace)
	if err == nil {
		t.Error("the dry run has created the repository")
	}
	out, err := plugin.Run(t.Context(), append(args, "--apply")...)
	must(t, err)
	if strings.Count(out, "/first-steps serverside-applied\n") != 3 {
		t.Errorf("applied: %s", out)
	}
	paula.Run(t, "wait", "-n", namespace, "--for=condition=Ready", "--timeout="+mirrortest.Deadline.String(),
		"gitrepoconfig/first-steps", "gitdestination/first-steps", "watchrule/first-steps")
	paula.Run(t, "create", "configmap", "note", "-n", namespace, "--from-literal=color=red")
	repository := filepath.Join(s.Env(devcluster.EnvGitRoot), "first-steps.git")
	mirrortest.Eventually(t, "the ConfigMap is in Git", func(ctx context.Context) error {
		file := "main:clusters/test/core/v1/configmaps/first-steps/note.yaml"
		out, err := exec.CommandContext(ctx, "git", "-C", repository, "show", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "color: red\n") {
			return fmt.Errorf("%w: %s", cmp.Or(err, errors.New("another content")), out)
		}
		return nil
	})

	// What was printed is what was applied.
	if _, err := paula.Kubectl.Feed(t.Context(), manifests, "diff", "--server-side", "--field-manager=kubectl-slipstream", "-f", "-"); err != nil {
		t.Errorf("the printed manifests differ: %v", err)
	}
	out, err = plugin.Run(t.Context(), "check", "-n", namespace)
	must(t, err)
	for _, want := range []string{
		"ok    API: configbutler.ai/v1alpha1 is served\n", "ok    version: server ", "ok    GitDestinations: 1 ready in namespace first-steps\n",
		"ok    rights: in namespace first-steps you may read the history, read earlier states, mirror, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("check does not print %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "server v1alpha1") {
		t.Errorf("check prints the version of the API as that of the server:\n%s", out)
	}
	completesInKubectl(t, s, paula.Kubectl, plugin.Program, namespace)
	_, err = plugin.Run(t.Context(), "mirror", "-n", "default", "--to", s.Env(devcluster.EnvGitURL)+"/x.git", "--apply")
	if err == nil || !strings.Contains(err.Error(), "forbidden") || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("in a namespace of others: %v", err)
	}
}

// completesInKubectl checks that kubectl completes with the plugin after install-hooks.
func completesInKubectl(t *testing.T, s *testCluster, user devcluster.Kubectl, program, namespace string) {
	t.Helper()
	folder := t.TempDir()
	must(t, os.Symlink(program, filepath.Join(folder, "kubectl-slipstream")))
	run := func(command string, args ...string) string {
		t.Helper()
		process := exec.CommandContext(t.Context(), command, args...)
		process.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "KUBECONFIG="+string(user.User), "HOME="+folder)
		out, err := process.Output()
		must(t, err)
		return string(out)
	}
	run(filepath.Join(folder, "kubectl-slipstream"), "install-hooks", "--dir", folder)
	kubectl := s.Env(devcluster.EnvKubectl)
	if out := run(kubectl, "__complete", "slipstream", "mirr"); !strings.HasPrefix(out, "mirror") {
		t.Errorf("commands: %s", out)
	}
	mirrortest.Eventually(t, "names are completed", func(context.Context) error { // The plugin gives the server three seconds.
		out := run(kubectl, "__complete", "slipstream", "diff", "-n", namespace, "--destination", "")
		if !strings.HasPrefix(out, "first-steps\n") {
			return errors.New(out)
		}
		return nil
	})
	if out := run(kubectl, "slipstream", "version"); strings.Count(out, "\n") != 2 {
		t.Errorf("version: %s", out)
	}
}

// plugin returns the plugin with the kubeconfig of a user.
func (s *testCluster) plugin(t *testing.T, of devcluster.Kubectl) devcluster.Kubectl {
	t.Helper()
	return clustertest.Plugin(t, of.User)
}
