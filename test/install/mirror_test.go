// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// mirror is a namespace whose ConfigMaps are mirrored.
type mirror struct {
	*testCluster
	namespace string
	// repository is the folder of the bare repository.
	repository string
	changes    int
}

// newMirror creates the namespace, its destination and its rule.
func (s *testCluster) newMirror(t *testing.T, namespace string) *mirror {
	t.Helper()
	m := &mirror{testCluster: s, namespace: namespace, repository: filepath.Join(s.Env(devcluster.EnvGitRoot), namespace+".git")}
	s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: git, namespace: %[1]s}
stringData:
  caBundle: %[3]q
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: git, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [git], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: git, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: git}
subjects:
- {kind: ServiceAccount, name: slipstream, namespace: slipstream-system}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: main, namespace: %[1]s}
spec:
  repoUrl: https://%[2]s/%[1]s.git
  allowedBranches: [main]
  secretRef: {name: git}
  accessPolicy: {allowClusterRules: true}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: %[1]s}
spec:
  repoRef: {name: main}
  branch: main
  baseFolder: cluster
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: main, namespace: %[1]s}
spec:
  destinationRef: {name: main}
  rules:
  - {name: all, resources: [configmaps]}
`, namespace, gitAddress, s.outside.authority))
	s.Ready(t, namespace, "watchrule/main")
	return m
}

// expectWorking changes a ConfigMap and waits until the change is in Git.
func (m *mirror) expectWorking(t *testing.T) {
	t.Helper()
	m.changes++
	value := "change-" + strconv.Itoa(m.changes)
	m.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: pulse, namespace: %s}
data: {value: %s}
`, m.namespace, value))
	path := "main:cluster/core/v1/configmaps/" + m.namespace + "/pulse.yaml"
	mirrortest.Eventually(t, value+" is in Git", func(ctx context.Context) error {
		content, err := m.gitOutput(ctx, "show", path)
		if err == nil && !strings.Contains(content, value) {
			err = fmt.Errorf("content of %s:\n%s", path, content)
		}
		if err != nil {
			status, _ := m.Administrator.Run(ctx, "get", "gitdestination/main", "-n", m.namespace, "-o", "jsonpath={.status.state}")
			err = fmt.Errorf("state of the destination: %q: %w", status, err)
		}
		return err
	})
}

// commits returns the commits of the branch, newest first.
func (m *mirror) commits(t *testing.T) string {
	t.Helper()
	out, err := m.gitOutput(t.Context(), "log", "--format=%H %s", "main")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (m *mirror) gitOutput(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", m.repository}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}
