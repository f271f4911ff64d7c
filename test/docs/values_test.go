// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// valuesMark is the first line of a block with values of the chart.
const valuesMark = "# values"

// TestValuesInPages checks that the chart accepts the values in pages.
func TestValuesInPages(t *testing.T) {
	root := moduleRoot(t)
	program := helm(t, root)
	found := 0
	for _, page := range pages(t, root) {
		for _, b := range fencedBlocks(t, root, page) {
			if b.language != languageYAML || len(b.lines) == 0 || b.lines[0] != valuesMark {
				continue
			}
			found++
			command := exec.CommandContext(t.Context(), program, "template", "slipstream", "charts/slipstream",
				"--namespace", devcluster.ServerNamespace, "--values", "-")
			command.Dir = root
			command.Stdin = strings.NewReader(strings.Join(b.lines, "\n"))
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: chart rejects the values: %v\n%s", page, b.line, err, out)
			}
		}
	}
	if found == 0 {
		t.Error("no page has values")
	}
}

// helm returns the path of the program.
func helm(t *testing.T, root string) string {
	t.Helper()
	program, err := programs.Helm.Build(t.Context(), root)
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	return program
}
