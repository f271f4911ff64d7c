// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// The names and folders of the two destinations: one for everything, with Secrets as plain files, and one for encrypted Secrets.
const (
	plain     = "plain"
	encrypted = "encrypted"
)

// testCluster is a cluster that is completely mirrored.
type testCluster struct {
	*devcluster.Cluster
	admin devcluster.Kubectl
	// repository is the folder of the bare repository.
	repository string
}

// newTestCluster starts a cluster whose objects are all mirrored.
func newTestCluster(t *testing.T, recipient string) *testCluster {
	t.Helper()
	cluster := clustertest.Start(t, devcluster.Options{Server: true})
	s := &testCluster{Cluster: cluster, admin: cluster.Kubectl(cluster.Admin())}
	s.repository = filepath.Join(cluster.Env(devcluster.EnvGitRoot), "fidelity.git")
	manifest, err := os.ReadFile(filepath.Join("testdata", "mirror.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("${GIT_URL}", cluster.Env(devcluster.EnvGitURL), "${RECIPIENT}", recipient).Replace(string(manifest))
	if _, err := s.admin.Feed(t.Context(), filled, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "wait", "clusterwatchrule", "--all", "--for=condition=Ready", "--timeout=180s")
	return s
}

// kubectl runs kubectl as the administrator and fails the test if it fails.
func (s *testCluster) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plugin returns the plugin as the administrator.
func (s *testCluster) plugin(t *testing.T) devcluster.Kubectl {
	t.Helper()
	return clustertest.Plugin(t, s.Admin())
}

// eventually runs kubectl as the administrator until it succeeds, because new kinds are in discovery some time after they are established.
func (s *testCluster) eventually(t *testing.T, arguments ...string) {
	t.Helper()
	mirrortest.Eventually(t, "kubectl "+arguments[0], func(ctx context.Context) error {
		_, err := s.admin.Run(ctx, arguments...)
		return err
	})
}

// git runs git on the bare repository.
func (s *testCluster) git(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", s.repository}, arguments...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// commit returns the last commit.
func (s *testCluster) commit(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.git(t, "rev-parse", "main"))
}

// mirrored waits until everything has been compared with the branch and pushed.
func (s *testCluster) mirrored(t *testing.T) {
	t.Helper()
	for _, destination := range []string{plain, encrypted} {
		mirrortest.InSync(t, s.admin, "mirror", destination)
	}
}

// clone returns the folder of a new clone, without the owner's markers. It must not contain the server's APIService, which would replace
// that of the other cluster.
func (s *testCluster) clone(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "clone")
	s.git(t, "clone", "-q", "--branch=main", s.repository, folder)
	registration := filepath.Join(folder, plain, "apiregistration.k8s.io/v1/apiservices", devcluster.APIServiceName+".yaml")
	if _, err := os.Stat(registration); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("mirror contains %s (error: %v)", registration, err)
	}
	for _, destination := range []string{plain, encrypted} {
		markers := filepath.Join(folder, destination, ".configbutler")
		if _, err := os.Stat(markers); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(markers); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// files returns the content of the files in a folder, by path.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		found[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
