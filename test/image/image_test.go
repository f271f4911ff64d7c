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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

func TestImage(t *testing.T) {
	s := newTestCluster(t)
	// Mount points are made in the root by what runs in it.
	t.Run("HoldsTheProgramAndTheAuthorities", func(t *testing.T) { testFiles(t, s) })
	t.Run("CheckFindsNothingInstalled", func(t *testing.T) { testNothingInstalled(t, s) })
	s.install(t)
	t.Run("Mirrors", func(t *testing.T) { testMirrors(t, s) })
	t.Run("WritesItsVolumeOnly", func(t *testing.T) { testWritesItsVolumeOnly(t, s) })
	t.Run("Backup", func(t *testing.T) { testBackup(t, s) })
	t.Run("HelmTest", func(t *testing.T) { testHelmTest(t, s) })
}

func testFiles(t *testing.T, s *testCluster) {
	var got []string
	err := filepath.WalkDir(s.image.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		got = append(got, strings.TrimPrefix(path, s.image.Root)+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/etc/ssl/certs/ca-certificates.crt -rw-r--r--", "/slipstream -rwxr-xr-x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.image.User != "65532:65532" || !slices.Equal(s.image.Entrypoint, []string{"/slipstream"}) {
		t.Errorf("it runs %v as %s", s.image.Entrypoint, s.image.User)
	}
	// What is linked to libraries does not run where there are none.
	output, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(s.image.Root, "slipstream")).CombinedOutput()
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
		t.Errorf("it ended with %v, want the code 1", err)
	}
	for _, want := range []string{"ok       kube-apiserver: v1.", "FAILED   APIService: v1alpha1.configbutler.ai is not registered", "next: run helm upgrade"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("it says\n%s\nwant %q", output, want)
		}
	}
}

func testMirrors(t *testing.T, s *testCluster) {
	s.Apply(t, `
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
`)
	repository := filepath.Join(s.Env(devcluster.EnvGitRoot), "shop.git")
	mirrortest.Eventually(t, "the ConfigMap is in Git", func(ctx context.Context) error {
		output, err := exec.CommandContext(ctx, "git", "-C", repository, "show", "main:shop/core/v1/configmaps/shop/prices.yaml").CombinedOutput()
		if err == nil && !strings.Contains(string(output), `apple: "1"`) {
			err = errors.New("it has no price of apples")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, output)
		}
		return err
	})
}

// testWritesItsVolumeOnly looks at the server's process from the machine.
func testWritesItsVolumeOnly(t *testing.T, s *testCluster) {
	process := serverProcess(t, s)
	status := read(t, filepath.Join(process, "status"))
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(status, want) {
			t.Errorf("its status lacks %q:\n%s", want, status)
		}
	}
	var writable []string
	for line := range strings.Lines(read(t, filepath.Join(process, "mountinfo"))) {
		fields := strings.Fields(line)
		if path, options := fields[4], fields[5]; !slices.Contains(strings.Split(options, ","), "ro") && !strings.HasPrefix(path, "/dev/") && path != "/proc" {
			writable = append(writable, path)
		}
	}
	if !slices.Equal(writable, []string{"/var/lib/slipstream"}) {
		t.Errorf("it can write to %v, want its volume only", writable)
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
			t.Errorf("the backup holds %v, want %s", names, want)
		}
	}
}

// testHelmTest runs what helm test runs, in the namespace that admits restricted Pods only.
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
	mirrortest.Eventually(t, "the check ends", func(ctx context.Context) (err error) {
		phase, err = s.Administrator.Run(ctx, "get", "pod", "slipstream-check", "--namespace="+devcluster.ServerNamespace, "--output=jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" && phase != "Failed" {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
	said := read(t, filepath.Join(s.nodeDir, "logs", "slipstream-check.log"))
	if phase != "Succeeded" || strings.Contains(said, "FAILED") {
		t.Errorf("it is %s:\n%s", phase, said)
	}
	for _, about := range []string{"kube-apiserver", "APIService", "certificate", "discovery", "objects", "controllers", "attribution"} {
		if !strings.Contains(said, "ok       "+about+": ") {
			t.Errorf("it says nothing good about %s:\n%s", about, said)
		}
	}
}

// serverProcess is the folder in /proc of the process that serves on a volume of this node.
func serverProcess(t *testing.T, s *testCluster) string {
	t.Helper()
	mounts, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	volume := filepath.Join(s.nodeDir, "claims")
	var found []string
	for _, file := range mounts {
		// Processes may have ended.
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
