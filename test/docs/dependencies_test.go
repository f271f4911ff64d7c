// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const dependenciesPage = "docs/dependencies.md"

// dependencyRow matches the row of a module in the tables.
var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$")

// TestEveryDependencyIsNamed checks that the page on dependencies has one row for each module that go.mod requires directly or for a
// tool, and no other rows.
func TestEveryDependencyIsNamed(t *testing.T) {
	root := moduleRoot(t)
	direct := directModules(readFile(t, filepath.Join(root, "go.mod")))
	if len(direct) < 20 {
		t.Fatalf("found only %d modules in go.mod", len(direct))
	}
	listed := map[string]bool{}
	for _, match := range dependencyRow.FindAllStringSubmatch(readFile(t, filepath.Join(root, dependenciesPage)), -1) {
		if listed[match[1]] {
			t.Errorf("%s lists %s twice", dependenciesPage, match[1])
		}
		listed[match[1]] = true
	}
	for _, module := range slices.Sorted(maps.Keys(direct)) {
		if !listed[module] {
			t.Errorf("%s does not list %s, which go.mod requires", dependenciesPage, module)
		}
	}
	for _, module := range slices.Sorted(maps.Keys(listed)) {
		if !direct[module] {
			t.Errorf("%s lists %s, which go.mod does not require directly", dependenciesPage, module)
		}
	}
}

func TestMissingDependencyIsFound(t *testing.T) {
	got := directModules(`module example.com/a

require (
	example.com/b v1.0.0
	example.com/c v1.0.0 // indirect
	example.com/d v1.0.0 // indirect
	example.com/d/e v1.0.0 // indirect
)

require example.com/f v1.0.0

tool (
	example.com/d/e/cmd/x
)
`)
	if want := map[string]bool{"example.com/b": true, "example.com/d/e": true, "example.com/f": true}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// directModules returns the modules that a go.mod requires directly, and those with its tools.
func directModules(text string) map[string]bool {
	direct := map[string]bool{}
	var indirect, tools []string
	directive := ""
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			continue
		case fields[0] == ")":
			directive = ""
			continue
		case len(fields) == 2 && fields[1] == "(":
			directive = fields[0]
			continue
		case directive != "":
			fields = append([]string{directive}, fields...)
		}
		switch {
		case fields[0] == "tool":
			tools = append(tools, fields[1])
		case fields[0] == "require" && strings.HasSuffix(line, "// indirect"):
			indirect = append(indirect, fields[1])
		case fields[0] == "require":
			direct[fields[1]] = true
		}
	}
	for _, tool := range tools {
		if module := moduleOf(tool, append(slices.Collect(maps.Keys(direct)), indirect...)); module != "" {
			direct[module] = true
		}
	}
	return direct
}

// moduleOf returns the module that contains a package: the longest that is a prefix of its path.
func moduleOf(pkg string, modules []string) string {
	longest := ""
	for _, module := range modules {
		if strings.HasPrefix(pkg, module+"/") && len(module) > len(longest) {
			longest = module
		}
	}
	return longest
}
