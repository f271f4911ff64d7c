// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var committed = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

func TestImageFiles(t *testing.T) {
	output := t.TempDir()
	if err := run(t.Context(), settings{source: newSource(t), output: output, images: allNames(), arches: "amd64,arm64"}); err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]struct{ folder, program string }{
		"slipstream":           {output, "slipstream"},
		"slipstream-dashboard": {filepath.Join(output, "dashboard"), "kubectl-slipstream"},
	} {
		t.Run(name, func(t *testing.T) { checkImages(t, each.folder, name, each.program) })
	}
}

// checkImages checks the images for all architectures in a folder of the output.
func checkImages(t *testing.T, folder, name, program string) {
	t.Helper()
	images := imagesOf(t, folder)
	for _, arch := range []string{"amd64", "arm64"} {
		if images[arch] == nil {
			t.Fatalf("no image for %s in the layout", arch)
		}
		want := []string{
			"etc 755 0:0", "etc/ssl 755 0:0", "etc/ssl/certs 755 0:0", "etc/ssl/certs/ca-certificates.crt 644 0:0", program + " 755 0:0",
		}
		if got := list(t, images[arch]); !slices.Equal(got, want) {
			t.Errorf("files for %s:\n%s\nwant:\n%s", arch, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	checkConfig(t, images["arm64"], name, program)

	archive, err := tarball.ImageFromPath(filepath.Join(folder, name+"-linux-arm64.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := configName(t, archive), configName(t, images["arm64"]); got != want {
		t.Errorf("got image %s in the archive, %s in the layout", got, want)
	}
}

func TestReproducibleDigest(t *testing.T) {
	source := newSource(t)
	clone := filepath.Join(t.TempDir(), "elsewhere")
	git(t, source, "clone", "--quiet", source, clone)
	digest := func(source string) string {
		output := t.TempDir()
		if err := run(t.Context(), settings{source: source, output: output, images: allNames(), arches: runtime.GOARCH}); err != nil {
			t.Fatal(err)
		}
		var indexes string
		for _, folder := range []string{"layout", "dashboard/layout"} {
			index, err := os.ReadFile(filepath.Join(output, folder, "index.json"))
			if err != nil {
				t.Fatal(err)
			}
			indexes += string(index)
		}
		return indexes
	}
	first := digest(source)
	if second := digest(clone); second != first {
		t.Errorf("clone in another folder: got digest %s\nwant %s", second, first)
	}
	// Settings of go env -w.
	machine := filepath.Join(t.TempDir(), "env")
	writeFile(t, machine, "GOFLAGS=-tags=another\nGOEXPERIMENT=jsonv2\n")
	t.Setenv("GOENV", machine)
	if third := digest(source); third != first {
		t.Errorf("with go env -w: got digest %s\nwant %s", third, first)
	}
	writeFile(t, filepath.Join(source, "cmd", "slipstream", "main.go"), "package main\n\nfunc main() { println() }\n")
	if changed := digest(source); changed == first || !strings.Contains(changed, "-dirty") {
		t.Errorf("modified work tree: got the same digest %s", changed)
	}
}

// TestVersion builds only the version that Go stamps, which is the highest tag of the commit.
func TestVersion(t *testing.T) {
	source := newSource(t)
	git(t, source, "tag", "v0.1.0")
	git(t, source, "tag", "v0.2.0")
	s := settings{source: source, images: "slipstream", arches: runtime.GOARCH, version: "v0.2.0", output: t.TempDir()}
	if err := run(t.Context(), s); err != nil {
		t.Error(err)
	}
	s.version, s.output = "v0.1.0", filepath.Join(t.TempDir(), "output")
	if err := run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "version v0.2.0, want v0.1.0") {
		t.Errorf("the lower of two tags: %v", err)
	}
	if _, err := os.Stat(s.output); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unexpected output: %v", err)
	}
}

func TestInvalidSettings(t *testing.T) {
	source := newSource(t)
	if err := os.RemoveAll(filepath.Join(source, ".git")); err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]struct {
		settings settings
		want     string
	}{
		"NoTag":               {settings{source: source, images: "slipstream", push: "registry.example.org/slipstream"}, "want REPOSITORY:TAG"},
		"NoGit":               {settings{source: source, images: "slipstream", arches: "amd64"}, "Git work tree"},
		"InvalidArchitecture": {settings{source: source, images: "slipstream", arches: "amd65"}, "linux/amd65"},
		"InvalidImage":        {settings{source: source, images: "slipstream,page", arches: "amd64"}, "want slipstream,slipstream-dashboard"},
	} {
		t.Run(name, func(t *testing.T) {
			each.settings.output = filepath.Join(t.TempDir(), "output")
			if err := run(t.Context(), each.settings); err == nil || !strings.Contains(err.Error(), each.want) {
				t.Errorf("got error %v, want %q", err, each.want)
			}
			if _, err := os.Stat(each.settings.output); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("unexpected output: %v", err)
			}
		})
	}
}

func TestRoots(t *testing.T) {
	content, err := roots()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !certificate.IsCA {
			t.Errorf("%s is not an authority", certificate.Subject)
		}
		count++
	}
	if count < 100 {
		t.Errorf("got %d authorities, want those of browsers", count)
	}
}

// imagesOf returns the images of the index in the layout, by architecture.
func imagesOf(t *testing.T, output string) map[string]v1.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(filepath.Join(output, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		if images[descriptor.Platform.Architecture], err = index.Image(descriptor.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// list returns the files of an image, with their modes and owners.
func list(t *testing.T, image v1.Image) []string {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	var lines []string
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(lines)
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(committed) {
			t.Errorf("%s: got time %s, want that of the commit", header.Name, header.ModTime)
		}
		lines = append(lines, fmt.Sprintf("%s %o %d:%d", header.Name, header.Mode, header.Uid, header.Gid))
	}
}

func checkConfig(t *testing.T, image v1.Image, name, program string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || !config.Created.Equal(committed) {
		t.Errorf("got platform %s/%s, created %s", config.OS, config.Architecture, config.Created)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/" + program}) || config.Config.Cmd != nil {
		t.Errorf("got entrypoint %v, command %v, user %q", config.Config.Entrypoint, config.Config.Cmd, config.Config.User)
	}
	for _, label := range []string{"title", "description", "source", "documentation", "licenses", "version", "revision", "created"} {
		if config.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("label %s missing", label)
		}
	}
	if got := config.Config.Labels["org.opencontainers.image.title"]; got != name {
		t.Errorf("got title %q, want %s", got, name)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; !strings.HasPrefix(got, "v0.0.0-20200203040506-") {
		t.Errorf("got version %q, want that of the commit", got)
	}
}

func configName(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	digest, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}
