// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/image"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

func TestImage(t *testing.T) {
	s := newTestCluster(t)
	// This test comes first, because running the image creates mount points in the root.
	t.Run("Files", func(t *testing.T) { testFiles(t, s.image, "slipstream", 75<<20) })
	t.Run("FilesOfThePage", func(t *testing.T) { testFilesOfThePage(t, s) })
	t.Run("CheckWithoutInstallation", func(t *testing.T) { testNothingInstalled(t, s) })
	s.install(t)
	t.Run("Mirror", func(t *testing.T) { testMirrors(t, s) })
	t.Run("WritableMounts", func(t *testing.T) { testWritableMounts(t, s) })
	t.Run("Backup", func(t *testing.T) { testBackup(t, s) })
	t.Run("HelmTest", func(t *testing.T) { testHelmTest(t, s) })
}

func testFilesOfThePage(t *testing.T, s *testCluster) {
	page, err := image.Make(t.Context(), s.root, t.TempDir(), image.Page)
	if err != nil {
		t.Fatal(err)
	}
	testFiles(t, page, "kubectl-slipstream", 48<<20)
}

// testFiles checks the files of an image, and that they have at most so many bytes.
func testFiles(t *testing.T, unpacked *image.Image, program string, most int64) {
	var got []string
	var size int64
	err := filepath.WalkDir(unpacked.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		got = append(got, strings.TrimPrefix(path, unpacked.Root)+" "+info.Mode().String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/etc/ssl/certs/ca-certificates.crt -rw-r--r--", "/" + program + " -rwxr-xr-x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if unpacked.User != "65532:65532" || !slices.Equal(unpacked.Entrypoint, []string{"/" + program}) {
		t.Errorf("entrypoint = %v, user = %s", unpacked.Entrypoint, unpacked.User)
	}
	t.Logf("%d bytes", size)
	if size > most {
		t.Errorf("image has %d bytes on a node, want at most %d", size, most)
	}
	// The image has no libraries, so the program must be linked statically.
	output, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(unpacked.Root, program)).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "CGO_ENABLED=0") || !strings.Contains(string(output), "vcs.revision=") {
		t.Errorf("%v\n%s", err, output)
	}
}

func testNothingInstalled(t *testing.T, s *testCluster) {
	command := exec.CommandContext(t.Context(), filepath.Join(s.image.Root, "slipstream"),
		"check", "--kubeconfig="+string(s.Admin()), "--namespace="+devcluster.ServerNamespace, "--timeout=0s")
	output, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("check returned %v, want exit code 1", err)
	}
	for _, want := range []string{
		"ok       kube-apiserver: v1.", "FAILED   APIService: v1alpha1.configbutler.ai is not registered", "next: run helm upgrade",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("check printed\n%s\nwant %q", output, want)
		}
	}
}

func testMirrors(t *testing.T, s *testCluster) {
	const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: shop}
data: {apple: "1"}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: main, namespace: shop}
spec: {repoUrl: "http://198.51.100.1/shop.git", allowedBranches: [main]}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: shop}
spec: {repoRef: {name: main}, branch: main, baseFolder: shop}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: main, namespace: shop}
spec: {destinationRef: {name: main}, rules: [{name: settings, apiGroups: [""], resources: [configmaps]}]}
`
	mirrortest.Eventually(t, "the kinds are in discovery", func(ctx context.Context) error {
		_, err := s.Administrator.Feed(ctx, manifests, "apply", "-f", "-")
		return err
	})
	repository := filepath.Join(s.Env(devcluster.EnvGitRoot), "shop.git")
	mirrortest.Eventually(t, "the ConfigMap is in Git", func(ctx context.Context) error {
		output, err := exec.CommandContext(ctx, "git", "-C", repository, "show", "main:shop/core/v1/configmaps/shop/prices.yaml").CombinedOutput()
		if err == nil && !strings.Contains(string(output), `apple: "1"`) {
			err = errors.New("price of apples is missing")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, output)
		}
		return err
	})
}

// testWritableMounts checks the privileges and the mounts of the server's process.
func testWritableMounts(t *testing.T, s *testCluster) {
	process := serverProcess(t, s)
	status := read(t, filepath.Join(process, "status"))
	for _, want := range []string{
		"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532",
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("status of the process lacks %q:\n%s", want, status)
		}
	}
	var writable []string
	for line := range strings.Lines(read(t, filepath.Join(process, "mountinfo"))) {
		fields := strings.Fields(line)
		if path, options := fields[4], fields[5]; !slices.Contains(strings.Split(options, ","), "ro") && !strings.HasPrefix(path, "/dev/") &&
			path != "/proc" {
			writable = append(writable, path)
		}
	}
	if !slices.Equal(writable, []string{"/var/lib/slipstream"}) {
		t.Errorf("writable mounts = %v, want only the volume", writable)
	}
}

func testBackup(t *testing.T, s *testCluster) {
	backup := tar.NewReader(bytes.NewReader(s.run(t, "backup", "-o", "-")))
	var names []string
	for {
		header, err := backup.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	for _, want := range []string{"manifest.json", "api.db", "work.db"} {
		if !slices.Contains(names, want) {
			t.Errorf("backup contains %v, want %s", names, want)
		}
	}
}

// testHelmTest runs the Pod of helm test, in a namespace with the restricted Pod Security Standard.
func testHelmTest(t *testing.T, s *testCluster) {
	helm, err := programs.Helm.Build(t.Context(), s.root)
	if err != nil {
		t.Fatal(err)
	}
	render := exec.CommandContext(t.Context(), helm, "template", "slipstream", filepath.Join(s.root, "charts", "slipstream"),
		"--namespace="+devcluster.ServerNamespace, "--show-only=templates/tests/check.yaml")
	manifest, err := render.Output()
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(t, string(manifest))
	phase := ""
	mirrortest.Eventually(t, "the check has ended", func(ctx context.Context) (err error) {
		phase, err = s.Administrator.Run(ctx, "get", "pod", "slipstream-check", "--namespace="+devcluster.ServerNamespace,
			"--output=jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" && phase != "Failed" {
			err = fmt.Errorf("phase %s", phase)
		}
		return err
	})
	output := read(t, filepath.Join(s.nodeDir, "logs", "slipstream-check.log"))
	if phase != "Succeeded" || strings.Contains(output, "FAILED") {
		t.Errorf("phase %s:\n%s", phase, output)
	}
	for _, about := range []string{"kube-apiserver", "APIService", "certificate", "discovery", "objects", "controllers", "attribution"} {
		if !strings.Contains(output, "ok       "+about+": ") {
			t.Errorf("check of %s is missing or failed:\n%s", about, output)
		}
	}
}

// serverProcess returns the folder in /proc of the process with a volume of this node.
func serverProcess(t *testing.T, s *testCluster) string {
	t.Helper()
	mounts, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	volume := filepath.Join(s.nodeDir, "claims")
	var found []string
	for _, file := range mounts {
		// The process may have ended.
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), volume) {
			found = append(found, filepath.Dir(file))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d processes have the volume, want one", len(found))
	}
	return found[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
