// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at is the time of the commit in these tests.
var at = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newImages writes what make image writes, for one architecture.
func newImages(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, sub := range map[string]string{"slipstream": "", "slipstream-dashboard": "dashboard"} {
		writeFile(t, filepath.Join(folder, sub, "layout", "index.json"), `{"manifests": [
			{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:1"},
			{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "`+digest+`"}]}`)
		writeFile(t, filepath.Join(folder, sub, "layout", "blobs", "sha256", "1"), name)
		writeFile(t, filepath.Join(folder, sub, name+"-linux-amd64.tar"), "archive of "+name)
		writeFile(t, filepath.Join(folder, sub, name+"-linux-amd64.cdx.json"), "modules of "+name)
	}
	return folder
}

func TestImages(t *testing.T) {
	var releases []map[string]string
	for range 2 {
		output := t.TempDir()
		images, err := writeImages(newImages(t), output, at)
		if err != nil {
			t.Fatal(err)
		}
		want := []image{
			{"slipstream", "ghcr.io/configbutler/slipstream", digest}, {"slipstream-dashboard", "ghcr.io/configbutler/slipstream-dashboard", digest},
		}
		if diff := cmp.Diff(want, images, cmp.AllowUnexported(image{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		releases = append(releases, contents(t, output))
	}
	if diff := cmp.Diff(releases[0], releases[1]); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}
	archive := untar(t, releases[0]["slipstream-dashboard.oci.tar"])
	if len(releases[0]) != 6 || len(archive) != 2 || archive["blobs/sha256/1"] != "slipstream-dashboard" {
		t.Errorf("%d files, and in the archive %v", len(releases[0]), archive)
	}
}

func TestImagesAreMissing(t *testing.T) {
	for want, damage := range map[string]func(folder string) error{
		"no files like slipstream-dashboard-linux-*": func(folder string) error {
			return errors.Join(os.Remove(filepath.Join(folder, "dashboard", "slipstream-dashboard-linux-amd64.tar")),
				os.Remove(filepath.Join(folder, "dashboard", "slipstream-dashboard-linux-amd64.cdx.json")))
		},
		"a layout has 0 indexes of images": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "layout", "index.json"), []byte("{}"), 0o600)
		},
	} {
		folder := newImages(t)
		if err := damage(folder); err != nil {
			t.Fatal(err)
		}
		if _, err := writeImages(folder, t.TempDir(), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestPin pins the images of the real values.
func TestPin(t *testing.T) {
	values, err := os.ReadFile("../../charts/slipstream/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	images := []image{{repository: "ghcr.io/configbutler/slipstream", digest: digest}, {repository: "ghcr.io/configbutler/slipstream-dashboard", digest: digest}}
	pinned, err := pin(values, images)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(pinned, []byte("digest: "+digest+"\n")); got != 2 {
		t.Errorf("%d digests", got)
	}
	if unpinned := bytes.ReplaceAll(pinned, []byte(digest), []byte(`""`)); !bytes.Equal(unpinned, values) {
		t.Error("values other than the digests differ")
	}
	if _, err := pin(pinned, images); err == nil {
		t.Error("an image with a digest was pinned again")
	}
}

func TestNotes(t *testing.T) {
	const changelog = "# Changes\n\nText.\n\n## v1.2.0, 2026-12-01\n\n- A [page](docs/a.md#b), a [site](https://example.org/a).\n\n## v1.1.0\n\n- Old.\n"
	got, err := notes(changelog, "v1.2.0")
	want := "- A [page](https://github.com/configbutler/slipstream/blob/v1.2.0/docs/a.md#b), a [site](https://example.org/a).\n"
	if err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := notes(changelog, "v1.1.0"); err != nil || got != "- Old.\n" {
		t.Errorf("the last section: %q, %v", got, err)
	}
	if _, err := notes(changelog, "v1.2"); err == nil {
		t.Error("a version that is the beginning of another has a section")
	}
}

// TestSums checks the checksums in sha256sum's format, which replace those of the plugin.
func TestSums(t *testing.T) {
	output := t.TempDir()
	writeFile(t, filepath.Join(output, "b"), "")
	writeFile(t, filepath.Join(output, "a"), "a\n")
	writeFile(t, filepath.Join(output, sumsFile), "of the plugin")
	if err := writeSums(output); err != nil {
		t.Fatal(err)
	}
	want := "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  a\n" + strings.TrimPrefix(digest, "sha256:") + "  b\n"
	if got := contents(t, output)[sumsFile]; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSubjects checks that the provenance is about all files and images.
func TestSubjects(t *testing.T) {
	output := t.TempDir()
	writeFile(t, filepath.Join(output, "b"), "")
	writeFile(t, filepath.Join(output, sumsFile), "")
	got, err := subjects(output, []image{{repository: "ghcr.io/configbutler/slipstream", digest: digest}})
	if err != nil {
		t.Fatal(err)
	}
	empty := map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}
	want := []resource{{Name: sumsFile, Digest: empty}, {Name: "b", Digest: empty}, {Name: "ghcr.io/configbutler/slipstream", Digest: empty}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(content)
	}
	return found
}

func untar(t *testing.T, archive string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for reader := tar.NewReader(strings.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(at) {
			t.Errorf("%s has the time %v", header.Name, header.ModTime)
		}
		found[header.Name] = string(content)
	}
}
