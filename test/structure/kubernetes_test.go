// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pinnedKubernetes = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(1\.\d+)\.\d+$`)
	chartKubernetes  = regexp.MustCompile(`(?m)^kubeVersion: ">=(1\.\d+)\.0-0"$`)
)

// TestOldestKubernetes checks that the chart and the pages name the oldest version of Kubernetes that make test-versions tests, and the
// newest one, and that Dependabot keeps the minor version of the oldest.
func TestOldestKubernetes(t *testing.T) {
	tree := os.DirFS("../..")
	version := func(file string, pattern *regexp.Regexp) string {
		match := pattern.FindSubmatch(read(t, tree, file))
		if match == nil {
			t.Fatalf("%s has no version of Kubernetes", file)
		}
		return string(match[1])
	}
	oldest, newest := version("hack/controlplane-oldest/go.mod", pinnedKubernetes), version("hack/controlplane/go.mod", pinnedKubernetes)
	if chart := version("charts/slipstream/Chart.yaml", chartKubernetes); chart != oldest {
		t.Errorf("the chart requires Kubernetes %s, but the oldest tested version is %s", chart, oldest)
	}
	for file, text := range map[string]string{
		"README.md":                   "Kubernetes " + oldest + " and newer",
		"docs/development.md":         "`hack/controlplane-oldest`, " + oldest + ", and on the newest one",
		"docs/upgrading.md":           "works with " + oldest + " and newer",
		"docs/install.md":             oldest + " or newer; the chart refuses older versions. The tests run on " + newest + ",",
		"charts/slipstream/README.md": "Kubernetes " + oldest + " or newer",
	} {
		if !strings.Contains(string(read(t, tree, file)), text) {
			t.Errorf("%s lacks %q", file, text)
		}
	}

	var config dependabot
	unmarshal(t, read(t, tree, ".github/dependabot.yml"), &config)
	for _, update := range config.Updates {
		if !slices.Contains(update.Directories, "/hack/controlplane-oldest") {
			continue
		}
		if len(update.Ignore) != 1 || update.Ignore[0].Name != "*" || !slices.Contains(update.Ignore[0].Types, "version-update:semver-minor") {
			t.Errorf("Dependabot updates the oldest version of Kubernetes to another minor version: %+v", update)
		}
	}
}
