// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package structure tests the rules of the repository's layout, which are described in docs/development.md.
package structure

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	module = "github.com/configbutler/slipstream/"
	// maxFolders limits the folders directly in pkg.
	maxFolders = 18
)

// public lists packages that only their own capability imports although they are not internal, with the reason.
var public = map[string]string{
	"pkg/catalog/commits":           "named in the tree of docs/development.md",
	"pkg/environment/condition":     "named in the tree of docs/development.md",
	"pkg/environment/detect":        "a stage of the controller, named in the tree of docs/development.md",
	"pkg/environment/syncer/copies": "what a sync copies, named in the tree of docs/development.md",
	"pkg/notification/condition":    "named in the tree of docs/development.md",
	"pkg/notification/format":       "a stage of the controller, named in the tree of docs/development.md",
	"pkg/notification/ledger":       "a stage of the controller, named in the tree of docs/development.md",
	"pkg/notification/observe":      "a stage of the controller, named in the tree of docs/development.md",
	"pkg/pipeline/condition":        "named in the tree of docs/development.md",
	"pkg/pipeline/delivery":         "a stage of the controller, named in the tree of docs/development.md",
	"pkg/pipeline/ledger":           "a stage of the controller, named in the tree of docs/development.md",
	"pkg/pipeline/observe":          "a stage of the controller, named in the tree of docs/development.md",
}

// file is a Go file with its imports from this module.
type file struct {
	folder  string
	isTest  bool
	imports []string
}

func TestRepositoryFollowsRules(t *testing.T) {
	files, err := readTree(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("read only %d files, so the tree is not that of the repository", len(files))
	}
	for _, violation := range check(files, public) {
		t.Error(violation)
	}
}

func TestRulesFindViolations(t *testing.T) {
	folders := map[string]string{}
	for i := range maxFolders + 1 {
		folders[fmt.Sprintf("pkg/p%d/p.go", i)] = ""
	}
	for name, test := range map[string]struct {
		// tree maps files to their imports, separated by spaces.
		tree   map[string]string
		public map[string]string
		want   string
	}{
		"valid": {tree: map[string]string{
			"cmd/app/main.go":         "pkg/a",
			"pkg/a/a.go":              "pkg/a/internal/b pkg/c",
			"pkg/a/internal/b/b.go":   "pkg/c",
			"pkg/c/c.go":              "",
			"pkg/c/c_test.go":         "pkg/a test/kit",
			"pkg/c/testdata/bad/x.go": "cmd/app",
			"test/kit/kit.go":         "cmd/app pkg/a",
			"hack/tool/tool.go":       "cmd/app test/kit",
		}},
		"too many folders": {tree: folders, want: "pkg has 19 folders, more than 18"},
		"circle": {
			tree: map[string]string{
				"pkg/a/a.go": "pkg/b/x", "pkg/b/x/x.go": "pkg/c", "pkg/b/b.go": "pkg/b/x", "pkg/c/c.go": "pkg/a", "pkg/d/d.go": "pkg/b/x",
			},
			want: "import circle: pkg/a -> pkg/b -> pkg/c -> pkg/a",
		},
		"not internal": {
			tree: map[string]string{"pkg/a/a.go": "pkg/a/b", "pkg/a/b/b.go": ""}, want: "only pkg/a imports pkg/a/b, so it belongs in internal",
		},
		"imported by a test": {tree: map[string]string{"pkg/a/a.go": "pkg/a/b", "pkg/a/b/b.go": "", "test/e2e/e_test.go": "pkg/a/b"}},
		"listed": {
			tree: map[string]string{"pkg/a/a.go": "pkg/a/b", "pkg/a/b/b.go": ""}, public: map[string]string{"pkg/a/b": "a stage"},
		},
		"listed without need": {
			tree:   map[string]string{"pkg/a/b/b.go": "", "pkg/c/c.go": "pkg/a/b"},
			public: map[string]string{"pkg/a/b": "a stage"}, want: "pkg/a/b does not need to be listed",
		},
		"listed, does not exist": {
			tree: map[string]string{"pkg/a/a.go": ""}, public: map[string]string{"pkg/a/b": "a stage"}, want: "pkg/a/b does not need to be listed",
		},
		"imports cmd":      {tree: map[string]string{"pkg/a/a.go": "cmd/app", "cmd/app/main.go": ""}, want: "pkg/a imports cmd/app"},
		"test imports cmd": {tree: map[string]string{"pkg/a/a_test.go": "cmd/app", "cmd/app/main.go": ""}, want: "pkg/a imports cmd/app"},
		"imports test": {
			tree: map[string]string{"cmd/app/main.go": "test/kit", "test/kit/kit.go": ""}, want: "cmd/app imports test/kit outside its tests",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, imports := range test.tree {
				text := "package p\n"
				for _, imported := range strings.Fields(imports) {
					text += "import _ " + strconv.Quote(module+imported) + "\n"
				}
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			files, err := readTree(tree)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(check(files, test.public), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// readTree parses the imports of all Go files.
func readTree(tree fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(base) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := file{folder: path.Dir(name), isTest: strings.HasSuffix(base, "_test.go")}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if local, ok := strings.CutPrefix(imported, module); ok {
				f.imports = append(f.imports, local)
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// check returns the violations of all rules.
func check(files []file, public map[string]string) []string {
	return slices.Concat(checkFolders(files), checkCircles(files), checkInternal(files, public), checkCommands(files))
}

// capability returns the folder directly in pkg, or at the top of the repository, that a package belongs to.
func capability(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	if parts[0] != "pkg" || len(parts) == 1 {
		return parts[0]
	}
	return "pkg/" + parts[1]
}

// checkFolders limits the folders directly in pkg.
func checkFolders(files []file) []string {
	folders := map[string]bool{}
	for _, f := range files {
		if strings.HasPrefix(f.folder, "pkg/") {
			folders[capability(f.folder)] = true
		}
	}
	if len(folders) > maxFolders {
		return []string{fmt.Sprintf("pkg has %d folders, more than %d", len(folders), maxFolders)}
	}
	return nil
}

// checkCircles rejects circles between the folders of pkg. Tests are allowed to import in any direction.
func checkCircles(files []file) []string {
	graph := map[string]map[string]bool{}
	for _, f := range files {
		from := capability(f.folder)
		if f.isTest || !strings.HasPrefix(from, "pkg/") {
			continue
		}
		for _, imported := range f.imports {
			if to := capability(imported); to != from && strings.HasPrefix(to, "pkg/") {
				if graph[from] == nil {
					graph[from] = map[string]bool{}
				}
				graph[from][to] = true
			}
		}
	}
	done := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		if circle := findCircle(graph, done, []string{from}); circle != nil {
			return []string{"import circle: " + strings.Join(circle, " -> ")}
		}
	}
	return nil
}

// findCircle returns the first circle that continues a way through the graph, nil if there is none. Folders from which no circle is
// reachable are done.
func findCircle(graph map[string]map[string]bool, done map[string]bool, way []string) []string {
	last := way[len(way)-1]
	if i := slices.Index(way, last); i < len(way)-1 {
		return way[i:]
	}
	if done[last] {
		return nil
	}
	for _, next := range slices.Sorted(maps.Keys(graph[last])) {
		if circle := findCircle(graph, done, append(slices.Clone(way), next)); circle != nil {
			return circle
		}
	}
	done[last] = true
	return nil
}

// checkInternal requires a package to be internal if only its own capability imports it, tests included.
func checkInternal(files []file, public map[string]string) []string {
	importers := map[string]map[string]bool{}
	for _, f := range files {
		for _, imported := range f.imports {
			if importers[imported] == nil {
				importers[imported] = map[string]bool{}
			}
			importers[imported][capability(f.folder)] = true
		}
	}
	private := map[string]bool{}
	for imported, by := range importers {
		own := capability(imported)
		isBelow := strings.HasPrefix(imported, "pkg/") && imported != own && own != "pkg/generated" && own != "pkg/apis"
		private[imported] = isBelow && len(by) == 1 && by[own] && !strings.Contains(imported+"/", "/internal/")
	}
	var violations []string
	for _, imported := range slices.Sorted(maps.Keys(private)) {
		if private[imported] && cmp.Or(public[imported], public[path.Dir(imported)]) == "" {
			violations = append(violations, fmt.Sprintf("only %s imports %s, so it belongs in internal", capability(imported), imported))
		}
	}
	for _, listed := range slices.Sorted(maps.Keys(public)) {
		if !private[listed] {
			violations = append(violations, listed+" does not need to be listed")
		}
	}
	return violations
}

// checkCommands rejects imports of commands by packages, and of test fixtures by anything but tests. Tools in hack are allowed both.
func checkCommands(files []file) []string {
	violations := map[string]bool{}
	for _, f := range files {
		from := capability(f.folder)
		if from == "hack" || from == "test" {
			continue
		}
		for _, imported := range f.imports {
			switch to := capability(imported); {
			case to == "cmd" && from != "cmd":
				violations[f.folder+" imports "+imported] = true
			case to == "test" && !f.isTest:
				violations[f.folder+" imports "+imported+" outside its tests"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(violations))
}
