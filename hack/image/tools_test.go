// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// TestSkopeo checks the image with Skopeo, whose library is that of podman, CRI-O and buildah and shares
// no code with this command.
func TestSkopeo(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed")
	}
	output := t.TempDir()
	if err := run(t.Context(), settings{source: newSource(t), output: output, images: "slipstream", arches: "amd64,arm64"}); err != nil {
		t.Fatal(err)
	}
	t.Run("Layout", func(t *testing.T) {
		from := filepath.Join(output, "layout")
		made := onlyTag(t, from)
		to := filepath.Join(t.TempDir(), "copy")
		skopeo(t, "copy", "--all", "--preserve-digests", "oci:"+from+":"+made.Annotations[tagAnnotation], "oci:"+to+":latest")
		if copied := onlyTag(t, to); copied.Digest != made.Digest {
			t.Errorf("got digest %s of the copy, want %s", copied.Digest, made.Digest)
		}
	})
	t.Run("Archive", func(t *testing.T) {
		archive := "docker-archive:" + filepath.Join(output, "slipstream-linux-arm64.tar")
		var config v1.ConfigFile
		if err := json.Unmarshal(skopeo(t, "inspect", "--config", archive), &config); err != nil {
			t.Fatal(err)
		}
		if config.Architecture != "arm64" || config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{"/slipstream"}) {
			t.Errorf("got configuration %+v", config)
		}
		// The copy reads all files, and compares them with their digests.
		skopeo(t, "copy", archive, "dir:"+t.TempDir())
	})
}

// skopeo runs a command on files of the test, without the machine's policy, and returns its output.
func skopeo(t *testing.T, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "skopeo", append([]string{"--insecure-policy"}, arguments...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, &stderr)
	}
	return printed
}

// onlyTag returns the only entry with a tag in a layout.
func onlyTag(t *testing.T, folder string) v1.Descriptor {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	tagged := slices.DeleteFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Annotations[tagAnnotation] == "" })
	if len(tagged) != 1 {
		t.Fatalf("%d entries have a tag, want one: %+v", len(tagged), manifest)
	}
	return tagged[0]
}
