// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// MarkerPath is the path of the owner's marker in a destination's folder.
	MarkerPath = ".configbutler/owner.yaml"
	// NotesPath is the path of a file of another user in a destination's folder.
	NotesPath = "NOTES.txt"
)

// Mirror is a namespace with a destination that has its own repository.
type Mirror struct {
	cluster   *AdminCluster
	Namespace string
	// Folder is the destination's folder.
	Folder string
	// Repository is the folder of the bare repository.
	Repository string
	// Branch is the branch with the commits, main unless a test sets another.
	Branch string
}

// Remote is the repository of a Mirror.
type Remote struct {
	URL string
	// Folder is the folder of the bare repository.
	Folder string
	// Secret is the name of the Secret with the credentials, empty for none.
	Secret string
}

// NewMirror creates a mirror with a repository of the cluster's Git server, which has the name of the namespace.
func (s *AdminCluster) NewMirror(t testing.TB, namespace string, extra ...string) *Mirror {
	t.Helper()
	return s.NewMirrorTo(t, namespace, Remote{
		URL:    s.Env(devcluster.EnvGitURL) + "/" + namespace + ".git",
		Folder: filepath.Join(s.Env(devcluster.EnvGitRoot), namespace+".git"),
	}, extra...)
}

// NewMirrorTo creates a namespace, and a GitRepoConfig and a GitDestination named main, without rules. extra are additional lines of the
// destination's spec. The repository admits all rules, so the destination alone decides which rules may use it.
func (s *AdminCluster) NewMirrorTo(t testing.TB, namespace string, remote Remote, extra ...string) *Mirror {
	t.Helper()
	m := &Mirror{cluster: s, Namespace: namespace, Folder: "clusters/test", Repository: remote.Folder, Branch: "main"}
	secret := ""
	if remote.Secret != "" {
		secret = fmt.Sprintf("\n  secretRef: {name: %s}", remote.Secret)
	}
	var spec strings.Builder
	for _, line := range extra {
		fmt.Fprintf(&spec, "  %s\n", line)
	}
	s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: main, namespace: %[1]s}
spec:
  repoUrl: %[2]s%[5]s
  allowedBranches: [main]
  accessPolicy: {allowClusterRules: true, namespacedRules: {mode: AllNamespaces}}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: %[1]s}
spec:
  repoRef: {name: main}
  branch: main
  baseFolder: %[3]s
%[4]s`, namespace, remote.URL, m.Folder, spec.String(), secret))
	return m
}

// Watch creates a rule that selects resources of the namespace, and waits until it is ready.
func (m *Mirror) Watch(t testing.TB, name string, resources ...string) {
	t.Helper()
	m.cluster.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: %s, namespace: %s}
spec:
  destinationRef: {name: main}
  rules:
  - name: all
    resources: [%s]
`, name, m.Namespace, strings.Join(resources, ", ")))
	m.cluster.Ready(t, m.Namespace, "watchrule/"+name)
}

// Git runs git on the bare repository, whose files may belong to the user of a Git host.
func (m *Mirror) Git(ctx context.Context, arguments ...string) (string, error) {
	all := append([]string{"-C", m.Repository, "-c", "safe.directory=" + m.Repository}, arguments...)
	out, err := exec.CommandContext(ctx, "git", all...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

// Files returns the files of the branch in the destination's folder, in order, without the owner's marker and the file of another user.
func (m *Mirror) Files(ctx context.Context) ([]string, error) {
	out, err := m.Git(ctx, "ls-tree", "-r", "--name-only", m.Branch, m.Folder+"/")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, line := range strings.Fields(out) {
		if file := strings.TrimPrefix(line, m.Folder+"/"); file != MarkerPath && file != NotesPath {
			files = append(files, file)
		}
	}
	return files, nil
}

// Commits returns the number of commits of the branch.
func (m *Mirror) Commits(t testing.TB) string {
	t.Helper()
	out, err := m.Git(t.Context(), "rev-list", "--count", m.Branch)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// ConfigMapPath returns the path to which a ConfigMap of the namespace is mirrored.
func (m *Mirror) ConfigMapPath(name string) string {
	return "core/v1/configmaps/" + m.Namespace + "/" + name + ".yaml"
}

// Holds waits until the content of a file contains a text.
func (m *Mirror) Holds(t testing.TB, path, text string) {
	t.Helper()
	Eventually(t, path+" contains "+text, func(ctx context.Context) error {
		content, err := m.Git(ctx, "show", m.Branch+":"+m.Folder+"/"+path)
		if err == nil && !strings.Contains(content, text) {
			err = fmt.Errorf("content:\n%s", content)
		}
		return err
	})
}

// Lacks waits until a file does not exist.
func (m *Mirror) Lacks(t testing.TB, path string) {
	t.Helper()
	Eventually(t, path+" is removed", func(ctx context.Context) error {
		files, err := m.Files(ctx)
		for _, file := range files {
			if file == path {
				return fmt.Errorf("%s still exists", path)
			}
		}
		return err
	})
}

// Settled waits until all changes are pushed.
func (m *Mirror) Settled(t testing.TB) {
	t.Helper()
	statuses := statusesOf(t, m.cluster.Admin(), m.Namespace)
	Eventually(t, "everything is pushed", func(ctx context.Context) error { return upToDate(ctx, statuses, "main") })
}

// Intact checks the repository with git fsck. While Git stores a push, fsck may find a commit whose parent is not stored yet.
func (m *Mirror) Intact(t testing.TB) {
	t.Helper()
	Eventually(t, "the repository is intact", func(ctx context.Context) error {
		_, err := m.Git(ctx, "fsck", "--strict")
		return err
	})
}
