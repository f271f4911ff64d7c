// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	upstreamSuite = "k8s.io/apiserver/pkg/storage/testing"
	upstreamStore = "k8s.io/apiserver/pkg/storage/etcd3"
	upstreamCache = "k8s.io/apiserver/pkg/storage/cacher"
)

// TestUpstreamSuiteIsComplete fails if an upstream test is neither run nor skipped by name, if a name does not exist
// upstream, or if a skipped test is one that upstream runs itself.
func TestUpstreamSuiteIsComplete(t *testing.T) {
	suite := upstreamTests(t)
	for name, here := range map[string]struct {
		run      map[string]func(*testing.T)
		skipped  map[string]string
		upstream string
	}{
		"store":       {onEngine.storeTests(), storeSkips, upstreamStore},
		"watch cache": {onEngine.cachedTests(), cachedSkips, upstreamCache},
	} {
		t.Run(name, func(t *testing.T) {
			listed := slices.Sorted(maps.Keys(here.run))
			listed = append(listed, slices.Sorted(maps.Keys(here.skipped))...)
			slices.Sort(listed)
			if !slices.Equal(listed, suite) {
				t.Errorf("tests run and skipped differ from upstream's tests\nhere:     %q\nupstream: %q", listed, suite)
			}
			upstream := upstreamRuns(t, here.upstream)
			for name := range here.skipped {
				if upstream[name] {
					t.Errorf("%s is skipped here, but upstream runs it", name)
				}
			}
		})
	}
}

// upstreamTests returns the names of the suite's tests, read from its source.
func upstreamTests(t *testing.T) (names []string) {
	t.Helper()
	parseFiles(t, upstreamSuite, func(p *goPackage) []string { return p.GoFiles }, func(file *ast.File) {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			name := function.Name.Name
			if strings.HasPrefix(name, "Run") && !strings.HasPrefix(name, "RunBenchmark") {
				names = append(names, name)
			}
		}
	})
	slices.Sort(names)
	return names
}

// upstreamRuns returns the tests of the suite that the tests of an upstream package call.
func upstreamRuns(t *testing.T, path string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	tests := func(p *goPackage) []string { return append(p.TestGoFiles, p.XTestGoFiles...) }
	parseFiles(t, path, tests, func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == "storagetesting" {
				names[selector.Sel.Name] = true
			}
			return true
		})
	})
	if len(names) == 0 {
		t.Fatalf("found no call of the suite in %s: it may be imported by another name", path)
	}
	return names
}

// goPackage is what go list prints about the sources of a package.
type goPackage struct {
	Dir                                string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// parseFiles visits the chosen source files of an upstream package.
func parseFiles(t *testing.T, path string, choose func(*goPackage) []string, visit func(*ast.File)) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=Dir,GoFiles,TestGoFiles,XTestGoFiles", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := &goPackage{}
	if err := json.Unmarshal(out, found); err != nil {
		t.Fatal(err)
	}
	for _, name := range choose(found) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(found.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(file)
	}
}
