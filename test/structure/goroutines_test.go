// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSequentialPackages checks the packages that the Makefile tests without the race detector.
func TestSequentialPackages(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	folders := makeVariable(string(makefile), "SEQUENTIAL")
	if len(folders) < 10 {
		t.Fatalf("the Makefile names %q", folders)
	}
	for _, folder := range folders {
		found, err := goroutines(os.DirFS("../.."), path.Clean(folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range found {
			t.Errorf("%s: the package must be tested with the race detector: remove it from SEQUENTIAL in the Makefile", place)
		}
	}
}

func TestGoroutinesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"none":       {"package p\nfunc f() { defer f() }", nil},
		"go":         {"package p\nfunc f() { go f() }", []string{"pkg/p/p.go:2"}},
		"a mutex":    {"package p\nimport \"sync\"\nvar m sync.Mutex", []string{"pkg/p/p.go:2"}},
		"t.Parallel": {"package p\nfunc f(t T) { t.Parallel() }", []string{"pkg/p/p.go:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := goroutines(fstest.MapFS{"pkg/p/p.go": {Data: []byte(test.content)}}, "pkg/p")
			if err != nil || !slices.Equal(found, test.want) {
				t.Errorf("found %q, %v, want %q", found, err, test.want)
			}
		})
	}
}

// makeVariable returns the words of a variable of a Makefile.
func makeVariable(makefile, name string) []string {
	_, value, _ := strings.Cut(strings.ReplaceAll(makefile, "\\\n", " "), "\n"+name+" = ")
	value, _, _ = strings.Cut(value, "\n")
	return strings.Fields(value)
}

// goroutines returns the places at which a package starts goroutines, or uses a package for what several of them use.
func goroutines(tree fs.FS, folder string) (places []string, err error) {
	files, err := fs.Glob(tree, folder+"/*.go")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no Go files", folder)
	}
	for _, name := range files {
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if isConcurrent(node) {
				places = append(places, fmt.Sprintf("%s:%d", name, set.Position(node.Pos()).Line))
			}
			return true
		})
	}
	return places, err
}

func isConcurrent(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.GoStmt:
		return true
	case *ast.SelectorExpr:
		return n.Sel.Name == "Parallel"
	case *ast.ImportSpec:
		imported, err := strconv.Unquote(n.Path.Value)
		return err == nil && slices.Contains([]string{
			"sync", "sync/atomic", "testing/synctest", "golang.org/x/sync/errgroup", "golang.org/x/sync/singleflight",
		}, imported)
	}
	return false
}
