// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/node"
	"github.com/configbutler/slipstream/test/image"
)

// repository and pageRepository are the image repositories of the chart.
const (
	repository     = "ghcr.io/configbutler/slipstream"
	pageRepository = "ghcr.io/configbutler/slipstream-dashboard"
)

// version returns the app version of the chart of a source tree.
func version(t *testing.T, source string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(source, chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		t.Fatal(err)
	}
	return metadata.AppVersion
}

// newImage builds an image of a source tree.
func newImage(t *testing.T, source string, name image.Name) node.Image {
	t.Helper()
	root := t.TempDir()
	// Pods with other users read the image.
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := image.Make(t.Context(), source, root, name)
	if err != nil {
		t.Fatal(err)
	}
	return node.Image{Root: made.Root, Entrypoint: made.Entrypoint}
}
