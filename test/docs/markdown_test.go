// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Languages of the fenced blocks that mean something here.
const (
	// languageShell is run.
	languageShell = "sh"
	// languageText, after a block that is run, is what that prints; "..." in it stands for anything.
	languageText = "text"
	// languageConsole has commands behind "$ " that are not run: each is on the list of those, with the reason.
	languageConsole = "console"
	// languageYAML is for reading.
	languageYAML = "yaml"
)

// fenced is a fenced block of a page.
type fenced struct {
	language string
	line     int
	lines    []string
}

// fencedBlocks returns the fenced blocks of a page in order. One in a list is as far to the right as the list's text.
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
		t.Fatalf("%s: a fenced block is not closed", file)
	}
	return blocks
}

// block is a fenced block that is run.
type block struct {
	// place is "file:line".
	place  string
	line   int
	script string
	// prints are the lines that the script is said to print.
	prints []string
}

// shellBlocks returns the blocks of a file that are run, in order.
func shellBlocks(t *testing.T, root, file string) []block {
	t.Helper()
	var blocks []block
	// follows is the block whose output a text block would be.
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

// pages lists the README and everything in docs, relative to the root.
func pages(t *testing.T, root string) []string {
	t.Helper()
	files := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, relative)
		}
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range pages(t, root) {
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
				t.Errorf("%s: the link %s leads nowhere: %v", page, target, err)
				continue
			}
			if anchor != "" && !anchors(t, file)[anchor] {
				t.Errorf("%s: the link %s names no heading", page, target)
			}
		}
	}
}

// path is a file or folder of the repository that a page names.
var path = regexp.MustCompile("`((?:cmd|pkg|hack|test|artifacts|docs)/[A-Za-z0-9_./-]+)`")

func TestNamedFilesExist(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range pages(t, root) {
		for _, match := range path.FindAllStringSubmatch(readFile(t, filepath.Join(root, page)), -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names a file that is not there: %v", page, err)
			}
		}
	}
}

// anchors returns the names by which the headings of a page can be linked to.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(readFile(t, file), -1) {
		names[slug(match[1])] = true
	}
	return names
}

// slug is the name that GitHub gives a heading.
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
