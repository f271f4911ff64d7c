// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

const (
	// namespace is the namespace of the release.
	namespace = "slipstream-system"
	// patience is the timeout for building helm on a busy machine.
	patience = 15 * time.Minute
	// kubernetes is the version of the cluster that the chart is rendered for. Without it, a helm that is not a release assumes a very old
	// version.
	kubernetes = "1.37.1"
)

// root returns the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// chartFile returns the path of a file of the chart.
func chartFile(t testing.TB, elements ...string) string {
	t.Helper()
	return filepath.Join(append([]string{root(t), "charts", "slipstream"}, elements...)...)
}

// renderWith renders the chart with one helm and values in YAML, without the objects of helm test. The error contains the error output of
// helm.
func renderWith(t testing.TB, tool programs.Tool, values string) (string, error) {
	t.Helper()
	return rendering(t, tool, values, "--skip-tests")
}

// rendering renders the chart with one helm and values in YAML. The error contains the error output of helm.
func rendering(t testing.TB, tool programs.Tool, values string, flags ...string) (string, error) {
	t.Helper()
	building, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	helm, err := tool.Build(building, root(t))
	if err != nil {
		t.Fatalf("failed to build helm: %v", err)
	}
	arguments := []string{"template", "slipstream", chartFile(t), "--namespace=" + namespace, "--kube-version=" + kubernetes, "--values=-"}
	command := exec.CommandContext(t.Context(), helm, slices.Concat(arguments, flags)...)
	// This excludes the repositories, plugins and settings of the user.
	command.Env = []string{"HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(values)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), nil
}

// render renders the chart with both versions of helm, whose results must only differ in empty lines and in the order of objects.
func render(t testing.TB, values string) string {
	t.Helper()
	var renderings [2][]string
	for number, tool := range []programs.Tool{programs.Helm, programs.Helm3} {
		rendering, err := renderWith(t, tool, values)
		if err != nil {
			t.Fatalf("values\n%s\nwere rejected: %v", values, err)
		}
		renderings[number] = documents(rendering)
	}
	if diff := cmp.Diff(renderings[0], renderings[1]); diff != "" {
		t.Errorf("values %s: the versions of helm differ:\n%s", values, diff)
	}
	return strings.Join(renderings[0], separator)
}

// separator separates the documents of a manifest.
const separator = "\n---\n"

// documents returns the sorted documents of a manifest, without empty lines.
func documents(manifest string) []string {
	lines := strings.FieldsFunc(manifest, func(r rune) bool { return r == '\n' })
	documents := strings.Split("\n"+strings.Join(lines, "\n"), separator)
	slices.Sort(documents)
	return slices.DeleteFunc(documents, func(document string) bool { return strings.TrimSpace(document) == "" })
}

// refused expects both versions of helm to reject values, and returns their error output.
func refused(t testing.TB, values string) string {
	t.Helper()
	var output string
	for _, tool := range []programs.Tool{programs.Helm, programs.Helm3} {
		_, err := renderWith(t, tool, values)
		if err == nil {
			t.Fatalf("values were accepted:\n%s", values)
		}
		output += err.Error()
	}
	return output
}
