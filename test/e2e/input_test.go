// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

func shell(ctx context.Context, script string) (string, error) {
	out, err := exec.CommandContext(ctx, "bash", "-c", script).CombinedOutput()
	return string(out), err
}

func badInput(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "bad")
	m.Watch(t, "config", "configmaps")
	s.ConfigMap(t, "bad", "safe", "a: '1'")
	m.Holds(t, m.ConfigMapPath("safe"), "name: safe\n")

	destination := func(name, field string) string {
		return fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: GitDestination\nmetadata: {name: %s, "+
			"namespace: bad}\nspec: {repoRef: {name: main}, %s}\n", name, field)
	}
	if why := s.refused(t, s.Administrator, destination("up", "branch: main, baseFolder: a/../b")); !strings.Contains(why, "spec.baseFolder") {
		t.Errorf("baseFolder with ..: %s", why)
	}
	s.Apply(t, destination("branch", "branch: release, baseFolder: other"))
	if why := s.Condition(t, "bad", "gitdestination/branch", "Ready", "BranchNotAllowed"); !strings.Contains(why, `"release"`) ||
		!strings.Contains(why, "main") {
		t.Errorf("branch that is not allowed: %s", why)
	}
	s.Apply(t, destination("inside", "branch: main, baseFolder: clusters/test/inside"))
	if why := s.Condition(t, "bad", "gitdestination/inside", "Ready", "FolderOverlaps"); !strings.Contains(why, "bad/main") {
		t.Errorf("folder inside that of another destination: %s", why)
	}

	repository := func(name, spec string) string {
		return fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: GitRepoConfig\nmetadata: {name: %s, "+
			"namespace: bad}\nspec: {allowedBranches: [main], %s}\n", name, spec)
	}
	s.Apply(t, repository("gone", "repoUrl: 'http://127.0.0.1:1/x.git'"))
	if why := s.Condition(t, "bad", "gitrepoconfig/gone", "Ready", "RepositoryUnreachable"); !strings.Contains(why, "127.0.0.1:1") {
		t.Errorf("unreachable repository: %s", why)
	}
	s.Apply(t, "{apiVersion: v1, kind: Secret, metadata: {name: empty, namespace: bad}, stringData: {user: x}}")
	s.Apply(t, repository("keyless", fmt.Sprintf("repoUrl: '%s/bad.git', secretRef: {name: empty}", s.Env(devcluster.EnvGitURL))))
	if why := s.Condition(t, "bad", "gitrepoconfig/keyless", "Ready", "SecretInvalid"); !strings.Contains(why, "the key password") {
		t.Errorf("Secret without the keys: %s", why)
	}

	out, err := s.Administrator.Feed(t.Context(), `
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: unknown, namespace: bad}
spec: {destinationRef: {name: main}, rules: [{name: all, resources: [gadgets]}]}
`, "apply", "-f", "-", "--warnings-as-errors")
	if err == nil || !strings.Contains(err.Error(), "gadgets") {
		t.Errorf("no warning about an unknown type: %v\n%s", err, out)
	}
	if why := s.Condition(t, "bad", "watchrule/unknown", "Ready", "NoMatchingTypes"); !strings.Contains(why, "gadgets") {
		t.Errorf("rule for an unknown type: %s", why)
	}

	// The existing mirror must continue to work.
	s.ConfigMap(t, "bad", "after", "a: '1'")
	m.Holds(t, m.ConfigMapPath("after"), "name: after\n")
	m.Holds(t, m.ConfigMapPath("safe"), "name: safe\n")
}

func userInterface(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "ui")
	m.Watch(t, "config", "configmaps")
	s.Ready(t, "ui", "gitrepoconfig/main", "gitdestination/main")
	m.Settled(t)
	table := s.Run(t, "get", "gds", "-n", "ui")
	header := strings.Join(strings.Fields(strings.SplitN(table, "\n", 2)[0]), " ")
	if header != "NAME BRANCH FOLDER COMMIT AGE-OF-COMMIT PENDING OBJECTS STATE" || !strings.Contains(table, "Up to date") {
		t.Errorf("kubectl get gds:\n%s", table)
	}
	if text := s.Run(t, "explain", "gitdestination.spec"); !strings.Contains(text, "baseFolder") {
		t.Errorf("kubectl explain gitdestination.spec:\n%s", text)
	}
	if out, err := s.Administrator.Feed(t.Context(), `
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: ui}
spec: {repoRef: {name: main}, branch: main, granularity: PerChange}
`, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out := s.Run(t, "get", "gd", "-n", "ui", "--field-selector", "metadata.name=main",
		"-o", "name"); strings.TrimSpace(out) != "gitdestination.configbutler.ai/main" {
		t.Errorf("by field selector: %q", out)
	}
	if out := s.Run(t, "get", "slipstream", "-n", "ui", "-o", "name"); strings.Count(out, "\n") < 4 {
		t.Errorf("category slipstream:\n%s", out)
	}
	watched(t, s)
}

// watched observes a deletion with kubectl get --watch.
func watched(t *testing.T, s *testCluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mirrortest.Deadline)
	defer cancel()
	command := s.Administrator.Command(ctx, "get", "watchrules", "-n", "ui", "--watch", "--output-watch-events")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = command.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ADDED") {
	}
	s.Delete(t, "ui", "watchrule/config")
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "DELETED") {
			return
		}
	}
	t.Errorf("the watch ended without the deletion: %v", ctx.Err())
}

func access(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "access")
	user, err := s.User("jane", "dev")
	if err != nil {
		t.Fatal(err)
	}
	jane := s.Kubectl(user)
	if _, err := jane.Run(t.Context(), "get", "gitdestinations", "-n", "access"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("list as an unprivileged user: %v", err)
	}
	s.Run(t, "create", "role", "rules", "-n", "access", "--verb=*",
		"--resource=watchrules.configbutler.ai,gitrepoconfigs.configbutler.ai,gitdestinations.configbutler.ai")
	s.Run(t, "create", "rolebinding", "rules", "-n", "access", "--role=rules", "--user=jane")
	s.Run(t, "create", "role", "config", "-n", "access", "--verb=get,list,watch", "--resource=configmaps")
	s.Run(t, "create", "rolebinding", "config", "-n", "access", "--role=config", "--user=jane")
	rule := func(resources string) string {
		return fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: WatchRule\nmetadata: {name: mine, "+
			"namespace: access}\nspec: {destinationRef: {name: main}, rules: [{name: all, %s}]}\n", resources)
	}
	mirrortest.Eventually(t, "the RBAC rules are effective", func(ctx context.Context) error {
		_, err := jane.Run(ctx, "get", "configmaps,watchrules.configbutler.ai", "-n", "access")
		return err
	})
	for name, resources := range map[string]string{
		"secrets": "resources: [secrets]", "the preset, which holds Secrets": "apiGroups: ['']", "everything": "resources: ['*']",
	} {
		if why := s.refused(t, jane, rule(resources)); !strings.Contains(why, "orbidden") ||
			name == "secrets" && !strings.Contains(why, "secrets") {
			t.Errorf("rule that selects %s: %s", name, why)
		}
	}
	if _, err := jane.Feed(t.Context(), rule("resources: [configmaps]"), "apply", "-f", "-"); err != nil {
		t.Errorf("rule that selects readable resources: %v", err)
	}
	if why := s.refused(t, jane, rule("resources: [configmaps, secrets]")); !strings.Contains(why, "secrets") {
		t.Errorf("update that adds Secrets: %s", why)
	}
	s.Run(t, "create", "secret", "generic", "token", "-n", "access", "--from-literal=username=x", "--from-literal=password=y")
	if why := s.refused(t, jane, `
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: theft, namespace: access}
spec: {repoUrl: 'https://git.example.com/x.git', allowedBranches: [main], secretRef: {name: token}}
`); !strings.Contains(why, "token") {
		t.Errorf("repository with an unreadable Secret: %s", why)
	}
	redirection(t, m, jane)
}

// redirection tests a user with write access and without access to Secrets, who tries to redirect the Secrets that a rule of
// the administrator mirrors to a shared destination.
func redirection(t *testing.T, m *mirror, jane devcluster.Kubectl) {
	m.Watch(t, "admin", "configmaps", "secrets")
	destination := func(name, field string) string {
		return fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: GitDestination\nmetadata: {name: %s, "+
			"namespace: access}\nspec: {repoRef: {name: main}, branch: main, %s}\n", name, field)
	}
	patch := func(object, spec string) error {
		_, err := jane.Run(t.Context(), "patch", object, "-n", "access", "--type=merge", "-p", `{"spec":`+spec+`}`)
		return err
	}
	rejected := func(name string, err error) {
		t.Helper()
		if err == nil ||
			!strings.Contains(err.Error(), "secrets in the namespace access, which WatchRule access/admin sends to GitDestination access/main") {
			t.Errorf("%s: %v", name, err)
		}
	}
	admitted := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	rejected("unencrypted Secrets", patch("gitdestination/main", `{"secrets":"AsIs"}`))
	rejected("another repository", patch("gitdestination/main", `{"repoRef":{"name":"mine"}}`))
	rejected("another URL", patch("gitrepoconfig/main", `{"repoUrl":"https://git.example.com/mine.git"}`))
	admitted("suspending the destination", patch("gitdestination/main", `{"suspend":true}`))
	admitted("keeping orphans", patch("gitdestination/main", `{"prune":"Never","suspend":false}`))

	_, err := jane.Feed(t.Context(), destination("mine", "baseFolder: mine, secrets: Omit"), "apply", "-f", "-")
	admitted("her own destination", err)
	admitted("her rule with her destination", patch("watchrule/mine", `{"destinationRef":{"name":"mine"}}`))

	if _, err := jane.Run(t.Context(), "delete", "gitdestination/main", "-n", "access"); err != nil {
		t.Fatal(err)
	}
	_, err = jane.Feed(t.Context(), destination("main", "secrets: AsIs"), "apply", "-f", "-")
	rejected("recreating the destination", err)
}

// namespaceDeleted deletes a namespace with a mirror. test/integration/apiserver covers the deletion of namespaces while the
// server is stopped.
func namespaceDeleted(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "leaving")
	m.Watch(t, "config", "configmaps")
	m.Settled(t)
	s.Delete(t, "", "namespace/leaving")
	if err := s.ControllerManagerHealthy(t.Context()); err != nil {
		t.Error(err)
	}
}
