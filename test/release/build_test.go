// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// password is that of the key in these tests.
const password = "a password"

// built is a signed release for the platform of the test, in the folder dist of a clone and in a registry.
type built struct {
	// version is the tag.
	version     string
	clone, dist string
	// folder has the key.
	folder string
	// registry is the address of the registry, blobs the folder with its blobs.
	registry, blobs     string
	cosign, crane, helm string
}

// TestRelease builds a release of the work tree, signs and pushes it, and uses it as those would who download it.
func TestRelease(t *testing.T) {
	b := newRelease(t)
	// That has built the tools first. The others share some.
	tools := t.TempDir()
	do(t, b.clone, "hack/build-release-tools.sh", tools)
	t.Setenv("RELEASE_TOOLS", tools)
	t.Run("SameFromAnotherClone", b.testSame)
	t.Run("Files", b.testFiles)
	t.Run("Provenance", b.testProvenance)
	t.Run("Registry", b.testRegistry)
	t.Run("Replays", b.testReplays)
	t.Run("Others", b.testOthers)
	t.Run("Page", b.testPage)
	t.Run("KMS", b.testKMS)
	t.Run("Install", b.testInstall)
}

func newRelease(t *testing.T) *built {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	b := &built{folder: t.TempDir(), clone: filepath.Join(t.TempDir(), "clone"), blobs: t.TempDir()}
	b.dist = filepath.Join(b.clone, "dist")
	b.cosign, b.crane, b.helm = tool(t, root, programs.Cosign), tool(t, root, programs.Crane), tool(t, root, programs.Helm)
	b.version = tagged(t, root, b.clone)
	do(t, b.folder, b.cosign, "generate-key-pair")
	b.startRegistry(t)
	// Files that git ignores do not get into a release.
	write(t, filepath.Join(b.clone, "charts", "slipstream", "templates", "ignored.bin"), "x")
	for _, program := range []string{"slipstream", "kubectl-slipstream"} {
		write(t, filepath.Join(b.clone, "cmd", program, "zz_ignored.go"), "package main\n\nfunc init() { println(\"ignored\") }\n")
	}
	write(t, filepath.Join(b.clone, ".git", "info", "exclude"), "*.bin\nzz_ignored.go\n")
	b.make(t, b.clone, "release", "RELEASE_KEY="+filepath.Join(b.folder, "cosign.key"), "RELEASE_PUSH="+b.registry+"/team/slipstream")
	return b
}

func tool(t *testing.T, root string, of programs.Tool) string {
	t.Helper()
	program, err := of.Build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// tagged makes a clone whose commit has the files of the work tree, as a release has them, and a tag, which it returns.
func tagged(t *testing.T, root, clone string) string {
	t.Helper()
	do(t, root, "git", "clone", "--quiet", root, clone)
	do(t, clone, "git", "--work-tree="+root, "add", "--all")
	commit(t, clone, "Work")
	do(t, clone, "git", "reset", "--quiet", "--hard")
	found := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindStringSubmatch(read(t, filepath.Join(clone, "charts", "slipstream", "Chart.yaml")))
	if found == nil {
		t.Fatal("the chart has no appVersion")
	}
	changes := filepath.Join(clone, "CHANGELOG.md")
	write(t, changes, strings.Replace(read(t, changes), "## "+found[1]+", not released yet", "## "+found[1]+", 2026-12-01", 1))
	do(t, clone, "git", "add", "--all")
	commit(t, clone, "Release")
	do(t, clone, "git", "-c", "tag.gpgSign=false", "tag", "--force", found[1])
	return found[1]
}

func commit(t *testing.T, clone, message string) {
	t.Helper()
	do(t, clone, "git", "-c", "user.name=Jane", "-c", "user.email=jane@example.com", "-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "-m", message)
}

// make runs a target of make for the release, with only the architecture of the test.
func (b *built) make(t *testing.T, clone, target string, variables ...string) {
	t.Helper()
	do(t, clone, "make", append([]string{
		target, "VERSION=" + b.version, "IMAGE_ARCHES=" + runtime.GOARCH, "PLUGIN_PLATFORMS=linux/" + runtime.GOARCH,
	}, variables...)...)
}

// startRegistry starts a registry on loopback until the test ends.
func (b *built) startRegistry(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, b.crane, "registry", "serve", "--address", "127.0.0.1:0", "--disk", b.blobs)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for b.registry == "" && lines.Scan() {
		if _, port, found := strings.Cut(lines.Text(), "serving on port "); found {
			b.registry = "127.0.0.1:" + port
		}
	}
	ended := make(chan struct{})
	go func() { // The registry would wait for a reader of its log.
		defer close(ended)
		for lines.Scan() {
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = command.Wait() // It was killed.
	})
	if b.registry == "" {
		t.Fatal("the registry has printed no port")
	}
}

// testSame builds the release again elsewhere: every file is the same, except for signatures.
func (b *built) testSame(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "a folder", "of-another-name")
	do(t, b.folder, "git", "clone", "--quiet", b.clone, clone)
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("TMPDIR", newFolder(t, filepath.Join(t.TempDir(), "with blanks")))
	setUser(t)
	b.make(t, clone, "release")
	first := sums(t, b.dist)
	for name := range first {
		if isSignature(name) {
			delete(first, name)
		}
	}
	if diff := cmp.Diff(first, sums(t, filepath.Join(clone, "dist"))); diff != "" {
		t.Errorf("(- first, + second):\n%s", diff)
	}
}

// setUser gives git and Go settings of a user that would change the bytes of files.
func setUser(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	write(t, filepath.Join(home, "git", "attributes"), "*.tpl export-ignore\n")
	write(t, filepath.Join(home, "gitconfig"), "[core]\n\tautocrlf = true\n[log]\n\tshowSignature = true\n[status]\n\tshowUntrackedFiles = no\n")
	write(t, filepath.Join(home, "go"), "GOEXPERIMENT=jsonv2\n")
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "gitconfig"))
	t.Setenv("GOENV", filepath.Join(home, "go"))
}

func newFolder(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// do runs a program, which must succeed, and returns what it prints.
func do(t *testing.T, folder, program string, arguments ...string) string {
	t.Helper()
	output, err := attempt(t, folder, program, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(arguments, " "), err, output)
	}
	return output
}

// attempt runs a program, and returns everything that it prints.
func attempt(t *testing.T, folder, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	var output bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &output, &output
	command.Env = append(os.Environ(), "COSIGN_PASSWORD="+password)
	err := command.Run()
	return output.String(), err
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
