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
	// namespace is that of the release.
	namespace = "slipstream-system"
	// patience is what the build of helm may take on a busy machine.
	patience = 15 * time.Minute
	// kubernetes is the version of the cluster that the chart is rendered for: a helm that is no release takes none for an
	// ancient one.
	kubernetes = "1.37.1"
)

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// chartFile is the path of a file of the chart.
func chartFile(t testing.TB, elements ...string) string {
	t.Helper()
	return filepath.Join(append([]string{root(t), "charts", "slipstream"}, elements...)...)
}

// renderWith has one helm render the chart with values, in YAML, without what helm test runs. The error is what helm says.
func renderWith(t testing.TB, tool programs.Tool, values string) (string, error) {
	t.Helper()
	return rendering(t, tool, values, "--skip-tests")
}

// rendering has one helm render the chart with values, in YAML. The error is what helm says.
func rendering(t testing.TB, tool programs.Tool, values string, flags ...string) (string, error) {
	t.Helper()
	building, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	helm, err := tool.Build(building, root(t))
	if err != nil {
		t.Fatalf("building helm: %v", err)
	}
	arguments := []string{"template", "slipstream", chartFile(t), "--namespace=" + namespace, "--kube-version=" + kubernetes, "--values=-"}
	command := exec.CommandContext(t.Context(), helm, slices.Concat(arguments, flags)...)
	// No repositories, plugins and settings of whoever runs the test.
	command.Env = []string{"HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(values)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, complaint.String())
	}
	return string(out), nil
}

// render has both versions of helm render the chart, which have to agree in everything but empty lines and the order of
// objects.
func render(t testing.TB, values string) string {
	t.Helper()
	var renderings [2][]string
	for number, tool := range []programs.Tool{programs.Helm, programs.Helm3} {
		rendering, err := renderWith(t, tool, values)
		if err != nil {
			t.Fatalf("rendering with\n%s\n%v", values, err)
		}
		renderings[number] = documents(rendering)
	}
	if diff := cmp.Diff(renderings[0], renderings[1]); diff != "" {
		t.Errorf("with %s the versions of helm do not agree:\n%s", values, diff)
	}
	return strings.Join(renderings[0], separator)
}

// separator is what stands between documents.
const separator = "\n---\n"

// documents are those of a manifest, without empty lines, in order.
func documents(manifest string) []string {
	lines := strings.FieldsFunc(manifest, func(r rune) bool { return r == '\n' })
	documents := strings.Split("\n"+strings.Join(lines, "\n"), separator)
	slices.Sort(documents)
	return slices.DeleteFunc(documents, func(document string) bool { return strings.TrimSpace(document) == "" })
}

// refused has both versions of helm refuse values, and returns what they say.
func refused(t testing.TB, values string) string {
	t.Helper()
	var said string
	for _, tool := range []programs.Tool{programs.Helm, programs.Helm3} {
		_, err := renderWith(t, tool, values)
		if err == nil {
			t.Fatalf("this was taken:\n%s", values)
		}
		said += err.Error()
	}
	return said
}
