// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// committed is the time of the commit of newSource.
var committed = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

// TestRelease builds twice, in different folders and with different settings of go env -w: the files are the same, and complete.
func TestRelease(t *testing.T) {
	var releases []map[string]string
	for range 2 {
		output := t.TempDir()
		machine := filepath.Join(t.TempDir(), "env") // Settings of go env -w; the first time, there are none.
		if len(releases) > 0 {
			if err := os.WriteFile(machine, []byte("GOEXPERIMENT=jsonv2\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("GOENV", machine)
		if err := run(t.Context(), settings{source: newSource(t), output: output, platforms: "linux/amd64,windows/amd64", url: "https://example.org/releases"}); err != nil {
			t.Fatal(err)
		}
		releases = append(releases, contents(t, output))
	}
	if diff := cmp.Diff(releases[0], releases[1]); diff != "" {
		t.Fatalf("the second build differs:\n%s", diff)
	}
	release := releases[0]
	plugin := wantKrew(t, release["slipstream.yaml"])
	wantPlatforms := []krewPlatform{
		{Selector: krewSelector{map[string]string{"os": "linux", "arch": "amd64"}}, Bin: "kubectl-slipstream"},
		{Selector: krewSelector{map[string]string{"os": "windows", "arch": "amd64"}}, Bin: "kubectl-slipstream.exe"},
	}
	sums := ""
	for i, want := range wantPlatforms {
		name := "kubectl-slipstream_" + plugin.Spec.Version + "_" + want.Selector.MatchLabels["os"] + "_amd64" + []string{".tar.gz", ".zip"}[i]
		want.SHA256, want.URI = archive{content: []byte(release[name])}.sum(), "https://example.org/releases/"+plugin.Spec.Version+"/"+name
		sums += want.SHA256 + "  " + name + "\n"
		if diff := cmp.Diff(want, plugin.Spec.Platforms[i]); diff != "" {
			t.Errorf("platform %d (-want +got):\n%s", i, diff)
		}
		files := untar
		if i == 1 {
			files = unzip
		}
		if diff := cmp.Diff(map[string]string{want.Bin: "-rwxr-xr-x", "LICENSE": "-rw-r--r--"}, files(t, release[name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if release["SHA256SUMS"] != sums || len(release) != 4 {
		t.Errorf("%d files, SHA256SUMS:\n%s", len(release), release["SHA256SUMS"])
	}
}

// TestManifestOfAllPlatforms checks the manifest of a release by the rules of krew.
func TestManifestOfAllPlatforms(t *testing.T) {
	var archives []archive
	for _, of := range []program{{os: "linux", arch: "amd64"}, {os: "darwin", arch: "arm64"}, {os: "windows", arch: "arm64"}} {
		archives = append(archives, archive{name: of.os + ".tar.gz", content: []byte(of.os), of: of})
	}
	manifest, err := krewManifest("https://example.org/releases", "v0.1.0-rc.1+dirty", archives)
	if err != nil {
		t.Fatal(err)
	}
	plugin := wantKrew(t, string(manifest))
	if got := plugin.Spec.Platforms[2]; got.Bin != "kubectl-slipstream.exe" || got.URI != "https://example.org/releases/v0.1.0-rc.1+dirty/windows.tar.gz" {
		t.Errorf("%+v", got)
	}
}

func TestReleaseNeedsACommit(t *testing.T) {
	source := newSource(t)
	if err := os.RemoveAll(filepath.Join(source, ".git")); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "output")
	for platforms, want := range map[string]string{"linux/amd64": "commit", "linux": "want OS/ARCH"} {
		if err := run(t.Context(), settings{source: source, output: output, platforms: platforms}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", platforms, err, want)
		}
	}
	if _, err := os.Stat(output); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// TestReleaseOfOneCommit refuses files that differ from the commit, and a folder with another release.
func TestReleaseOfOneCommit(t *testing.T) {
	s := settings{source: newSource(t), output: t.TempDir(), platforms: "linux/amd64", url: "https://example.org/releases"}
	if err := os.WriteFile(filepath.Join(s.source, "LICENSE"), []byte("Do nothing.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "+dirty: commit them") || len(contents(t, s.output)) > 0 {
		t.Errorf("files that differ: %v", err)
	}
	s.allowDirty = true
	for range 2 { // The second time replaces the files.
		if err := run(t.Context(), s); err != nil {
			t.Errorf("with -allow-dirty: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.output, "kubectl-slipstream_v0.0.1_linux_amd64.tar.gz"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "kubectl-slipstream_v0.0.1_linux_amd64.tar.gz is of another release") {
		t.Errorf("beside another release: %v", err)
	}
}

// TestReleaseOfOneVersion builds only the version that Go stamps, which is the highest tag of the commit.
func TestReleaseOfOneVersion(t *testing.T) {
	s := settings{source: newSource(t), output: t.TempDir(), platforms: "linux/amd64", url: "https://example.org/releases", version: "v0.2.0"}
	git(t, s.source, "tag", "v0.1.0")
	git(t, s.source, "tag", "v0.2.0")
	if err := run(t.Context(), s); err != nil {
		t.Error(err)
	}
	s.version, s.output = "v0.1.0", t.TempDir()
	if err := run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "version v0.2.0, want v0.1.0") || len(contents(t, s.output)) > 0 {
		t.Errorf("the lower of two tags: %v", err)
	}
}

// wantKrew checks a manifest as krew validates plugins, without fields that it does not know.
func wantKrew(t *testing.T, manifest string) krewPlugin {
	t.Helper()
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict([]byte(manifest), &plugin); err != nil {
		t.Fatal(err)
	}
	spec := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata["name"] != "slipstream" ||
		spec.ShortDescription == "" || strings.ContainsAny(spec.ShortDescription, "\r\n") || len(spec.ShortDescription) > 50 || len(spec.Platforms) == 0 {
		t.Errorf("manifest:\n%s", manifest)
	}
	if _, err := version.ParseSemantic(spec.Version); err != nil || !strings.HasPrefix(spec.Version, "v") {
		t.Errorf("version %q: %v", spec.Version, err)
	}
	sha256 := regexp.MustCompile(`^[a-f0-9]{64}$`)
	for _, each := range spec.Platforms {
		if each.URI == "" || each.Bin == "" || !sha256.MatchString(each.SHA256) || len(each.Selector.MatchLabels) != 2 {
			t.Errorf("platform %+v", each)
		}
	}
	return plugin
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, each := range entries {
		content, err := os.ReadFile(filepath.Join(folder, each.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[each.Name()] = string(content)
	}
	return files
}

// untar returns the names and modes of the files in a compressed tar file, which must have the time of the commit.
func untar(t *testing.T, content string) map[string]string {
	t.Helper()
	uncompressed, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(committed) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%+v", header)
		}
		files[header.Name] = header.FileInfo().Mode().String()
	}
}

// unzip is untar for zip files.
func unzip(t *testing.T, content string) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader([]byte(content)), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, each := range reader.File {
		if !each.Modified.Equal(committed) {
			t.Errorf("%s is of %s", each.Name, each.Modified)
		}
		files[each.Name] = each.Mode().String()
	}
	return files
}

// newSource creates a repository with a trivial plugin, committed at a fixed time.
func newSource(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                         "module example.org/tiny\n\ngo 1.26.0\n",
		"LICENSE":                        "Do what you like.\n",
		"cmd/kubectl-slipstream/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message=Begin"}} {
		git(t, source, arguments...)
	}
	return source
}

func git(t *testing.T, folder string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE="+committed.Format(time.RFC3339),
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE="+committed.Format(time.RFC3339))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
}
