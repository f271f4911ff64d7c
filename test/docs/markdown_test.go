// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Languages of fenced blocks.
const (
	// languageShell blocks are run.
	languageShell = "sh"
	// languageText blocks after a shell block are its output; "..." matches any text.
	languageText = "text"
	// languageConsole blocks have commands after "$ " that are not run. Each must be in commandsNotRun.
	languageConsole = "console"
	// languageYAML and languageJSON blocks are not run.
	languageYAML = "yaml"
	languageJSON = "json"
	// languageGo and languagePython blocks are run by TestSignature.
	languageGo     = "go"
	languagePython = "python"
)

// fenced is a fenced block of a page.
type fenced struct {
	language string
	line     int
	lines    []string
}

// fencedBlocks returns the fenced blocks of a page in order. A block in a list has the indentation of the list.
func fencedBlocks(t *testing.T, root, file string) []fenced {
	t.Helper()
	var blocks []fenced
	indent, inside := "", false
	for i, line := range strings.Split(readFile(t, filepath.Join(root, file)), "\n") {
		text := strings.TrimLeft(line, " ")
		fence, isFence := strings.CutPrefix(text, "```")
		switch {
		case isFence && !inside:
			inside, indent = true, line[:len(line)-len(text)]
			blocks = append(blocks, fenced{language: fence, line: i + 1})
		case isFence:
			inside = false
		case inside:
			last := &blocks[len(blocks)-1]
			last.lines = append(last.lines, strings.TrimPrefix(line, indent))
		}
	}
	if inside {
		t.Fatalf("%s: unclosed fenced block", file)
	}
	return blocks
}

// block is a fenced block that is run.
type block struct {
	// place is "file:line".
	place  string
	line   int
	script string
	// prints are the expected lines of output.
	prints []string
}

// shellBlocks returns the blocks of a file that are run, in order.
func shellBlocks(t *testing.T, root, file string) []block {
	t.Helper()
	var blocks []block
	// follows is the index of the block whose output a text block is.
	follows := -1
	for _, each := range fencedBlocks(t, root, file) {
		switch {
		case each.language == languageShell:
			follows = len(blocks)
			place := fmt.Sprintf("%s:%d", file, each.line)
			blocks = append(blocks, block{place: place, line: each.line, script: strings.Join(each.lines, "\n")})
		case each.language == languageText && follows >= 0:
			blocks[follows].prints, follows = each.lines, -1
		default:
			follows = -1
		}
	}
	return blocks
}

// splitAt returns the blocks of a page before a heading, and those after it.
func splitAt(t *testing.T, root, page, heading string) (before, after []block) {
	t.Helper()
	at := 0
	for i, line := range strings.Split(readFile(t, filepath.Join(root, page)), "\n") {
		if line == heading {
			at = i + 1
		}
	}
	if at == 0 {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	for _, b := range shellBlocks(t, root, page) {
		if b.line < at {
			before = append(before, b)
		} else {
			after = append(after, b)
		}
	}
	return before, after
}

// pages returns the paths of the README and of all files in docs, relative to the root.
func pages(t *testing.T, root string) []string {
	t.Helper()
	return matching(t, root, "README.md", "docs/*.md", "docs/*/*.md")
}

// allPages returns the pages, and the other files in Markdown at the root and in .github.
func allPages(t *testing.T, root string) []string {
	t.Helper()
	return matching(t, root, "*.md", ".github/*.md", "docs/*.md", "docs/*/*.md")
}

// matching returns the paths of the files that match the patterns, relative to the root.
func matching(t *testing.T, root string, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

var (
	link    = regexp.MustCompile(`(?:\]\(|\bsrc(?:set)?=")([^)"\s]+)[)"]`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestLinks(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range allPages(t, root) {
		for _, match := range link.FindAllStringSubmatch(readFile(t, filepath.Join(root, page)), -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			below, anchor, _ := strings.Cut(target, "#")
			file := filepath.Join(root, page)
			if below != "" {
				file = filepath.Join(root, filepath.Dir(page), below)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: broken link %s: %v", page, target, err)
				continue
			}
			if anchor != "" && !anchors(t, file)[anchor] {
				t.Errorf("%s: link %s has no heading", page, target)
			}
		}
	}
}

// path matches names of files and folders of the repository in pages.
var path = regexp.MustCompile("`((?:cmd|pkg|hack|test|artifacts|docs)/[A-Za-z0-9_./-]+)`")

func TestNamedFilesExist(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range allPages(t, root) {
		if page == "CHANGELOG.md" {
			continue // It also names files of earlier versions.
		}
		for _, match := range path.FindAllStringSubmatch(readFile(t, filepath.Join(root, page)), -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names a missing file: %v", page, err)
			}
		}
	}
}

var (
	makeTarget  = regexp.MustCompile("`make ([a-z-]+)")
	phonyTarget = regexp.MustCompile(`(?m)^\.PHONY: ([a-z-]+)$`)
)

func TestNamedTargetsExist(t *testing.T) {
	root := moduleRoot(t)
	targets := map[string]bool{}
	for _, match := range phonyTarget.FindAllStringSubmatch(readFile(t, filepath.Join(root, "Makefile")), -1) {
		targets[match[1]] = true
	}
	for _, page := range allPages(t, root) {
		for _, match := range makeTarget.FindAllStringSubmatch(readFile(t, filepath.Join(root, page)), -1) {
			if !targets[match[1]] {
				t.Errorf("%s names the target %s, which the Makefile does not have", page, match[1])
			}
		}
	}
}

// anchors returns the anchors of a page's headings.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(readFile(t, file), -1) {
		names[slug(match[1])] = true
	}
	return names
}

// slug returns GitHub's anchor of a heading.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, text)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
