// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

// deadline is more than anything waited for here takes on a busy machine.
const deadline = time.Minute

// stage is a cluster with the server, as the administrator sees it.
type stage struct {
	*devcluster.Cluster
	admin devcluster.Kubectl
}

func newStage(t *testing.T, options devcluster.Options) *stage {
	t.Helper()
	options.Server = true
	cluster := clustertest.Start(t, options)
	return &stage{Cluster: cluster, admin: cluster.Kubectl(cluster.Admin())}
}

// kubectl runs kubectl as the administrator and fails the test if it fails.
func (s *stage) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies manifests as the administrator.
func (s *stage) apply(t *testing.T, manifests string) {
	t.Helper()
	if _, err := s.admin.Feed(t.Context(), manifests, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// refused applies manifests and returns why that was refused.
func (s *stage) refused(t *testing.T, as devcluster.Kubectl, manifests string) string {
	t.Helper()
	_, err := as.Feed(t.Context(), manifests, "apply", "-f", "-")
	if err == nil {
		t.Fatalf("applied, although it should be refused:\n%s", manifests)
	}
	return err.Error()
}

// ready waits for the condition Ready.
func (s *stage) ready(t *testing.T, arguments ...string) {
	t.Helper()
	s.kubectl(t, append([]string{"wait", "--for=condition=Ready", "--timeout=60s"}, arguments...)...)
}

// eventually waits until check succeeds.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, deadline, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}

// mirror is a namespace whose destination has a repository of its own.
type mirror struct {
	*stage
	namespace string
	// folder is the destination's.
	folder string
	// repository is the bare repository's folder.
	repository string
}

// newMirror makes a namespace, a repository configuration and a destination, both called
// main, without rules. extra lines go into the destination's spec.
func (s *stage) newMirror(t *testing.T, namespace string, extra ...string) *mirror {
	t.Helper()
	m := &mirror{stage: s, namespace: namespace, folder: "clusters/test", repository: filepath.Join(s.Env(devcluster.EnvGitRoot), namespace+".git")}
	var spec strings.Builder
	for _, line := range extra {
		fmt.Fprintf(&spec, "  %s\n", line)
	}
	s.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: main, namespace: %[1]s}
spec:
  repoUrl: %[2]s/%[1]s.git
  allowedBranches: [main]
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: %[1]s}
spec:
  repoRef: {name: main}
  branch: main
  baseFolder: %[3]s
%[4]s`, namespace, s.Env(devcluster.EnvGitURL), m.folder, spec.String()))
	return m
}

// watch makes a rule that selects resources of the namespace, and waits for it to be in
// force.
func (m *mirror) watch(t *testing.T, name string, resources ...string) {
	t.Helper()
	m.apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: %s, namespace: %s}
spec:
  destinationRef: {name: main}
  rules:
  - name: all
    resources: [%s]
`, name, m.namespace, strings.Join(resources, ", ")))
	m.ready(t, "-n", m.namespace, "watchrule/"+name)
}

// git runs git on the bare repository.
func (m *mirror) git(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", m.repository}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

// markerPath is where the owner's marker is in a destination's folder.
const markerPath = ".configbutler/owner.yaml"

// notesPath is where other people keep a file of their own in a destination's folder.
const notesPath = "NOTES.txt"

// files lists the files of the branch below the destination's folder, in order, less the
// owner's marker and other people's.
func (m *mirror) files(ctx context.Context) ([]string, error) {
	out, err := m.git(ctx, "ls-tree", "-r", "--name-only", "main", m.folder+"/")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, line := range strings.Fields(out) {
		if file := strings.TrimPrefix(line, m.folder+"/"); file != markerPath && file != notesPath {
			files = append(files, file)
		}
	}
	return files, nil
}

// commits counts the commits of the branch.
func (m *mirror) commits(t *testing.T) string {
	t.Helper()
	out, err := m.git(t.Context(), "rev-list", "--count", "main")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// configMapPath is where a ConfigMap of the namespace is mirrored to.
func (m *mirror) configMapPath(name string) string {
	return "core/v1/configmaps/" + m.namespace + "/" + name + ".yaml"
}

// holds waits until a file's content has a text in it.
func (m *mirror) holds(t *testing.T, path, text string) {
	t.Helper()
	eventually(t, path+" holds "+text, func(ctx context.Context) error {
		content, err := m.git(ctx, "show", "main:"+m.folder+"/"+path)
		if err == nil && !strings.Contains(content, text) {
			err = fmt.Errorf("it holds:\n%s", content)
		}
		return err
	})
}

// lacks waits until there is no such file.
func (m *mirror) lacks(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" goes", func(ctx context.Context) error {
		files, err := m.files(ctx)
		for _, file := range files {
			if file == path {
				return fmt.Errorf("%s is there", path)
			}
		}
		return err
	})
}

// settled waits until nothing is on its way to Git.
func (m *mirror) settled(t *testing.T) {
	t.Helper()
	eventually(t, "everything is pushed", func(ctx context.Context) error {
		state, err := m.admin.Run(ctx, "get", "gds", "main", "-n", m.namespace, "-o", "jsonpath={.status.state}")
		if err == nil && state != "Up to date" {
			err = fmt.Errorf("state %q", state)
		}
		return err
	})
}

// intact lets git check the repository.
func (m *mirror) intact(t *testing.T) {
	t.Helper()
	if _, err := m.git(t.Context(), "fsck", "--strict"); err != nil {
		t.Error(err)
	}
}
