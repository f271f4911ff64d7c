// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUpstreamSuiteIsComplete fails when upstream has a test that is neither run
// nor on the list of those that are left out, and when a list names one that
// upstream no longer has.
func TestUpstreamSuiteIsComplete(t *testing.T) {
	upstream := upstreamTests(t)
	for name, suite := range map[string]struct {
		run     map[string]func(*testing.T)
		skipped map[string]string
	}{
		"store":       {storeTests(), storeSkips},
		"watch cache": {cachedTests(), cachedSkips},
	} {
		t.Run(name, func(t *testing.T) {
			listed := slices.Sorted(maps.Keys(suite.run))
			listed = append(listed, slices.Sorted(maps.Keys(suite.skipped))...)
			slices.Sort(listed)
			if !slices.Equal(listed, upstream) {
				t.Errorf("the tests run and left out are not the tests of upstream, each once\nhere:     %q\nupstream: %q", listed, upstream)
			}
		})
	}
}

// upstreamTests reads the names of the suite's tests from its source.
func upstreamTests(t *testing.T) (names []string) {
	t.Helper()
	found, err := build.Import("k8s.io/apiserver/pkg/storage/testing", ".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(found.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			name := function.Name.Name
			if strings.HasPrefix(name, "Run") && !strings.HasPrefix(name, "RunBenchmark") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
