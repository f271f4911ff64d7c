// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"golang.org/x/term"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// contextLines is the number of unchanged lines around a difference.
const contextLines = 3

// linesOf returns the lines of the canonical YAML of a content, none for nil.
func linesOf(content *unstructured.Unstructured) ([]string, error) {
	if content == nil {
		return nil, nil
	}
	text, err := manifest.Render(content)
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.Lines(string(text))), nil
}

// writeDifference prints a unified diff of two contents, nothing if they are equal. It reports whether they differ.
func writeDifference(out io.Writer, nameBefore, nameAfter string, before, after *unstructured.Unstructured) (differs bool, err error) {
	var lines [2][]string
	names := [2]string{nameBefore, nameAfter}
	for i, content := range []*unstructured.Unstructured{before, after} {
		if lines[i], err = linesOf(content); err != nil {
			return false, err
		}
		if content == nil {
			names[i] = os.DevNull
		}
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines[0], B: lines[1], FromFile: names[0], ToFile: names[1], Context: contextLines,
	})
	if err != nil || text == "" {
		return false, err
	}
	_, err = io.WriteString(out, coloured(printable.Text(text), isTerminal(out)))
	return true, err
}

// isTerminal reports whether a stream is a terminal that shows colours or asks a person.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colours of a diff, as Git has them.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[m"
)

// coloured colours the lines of a unified diff. Nothing is coloured if NO_COLOR is set.
func coloured(text string, wanted bool) string {
	if !wanted || os.Getenv("NO_COLOR") != "" {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		colour := ""
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			colour = bold
		case strings.HasPrefix(line, "@@"):
			colour = cyan
		case strings.HasPrefix(line, "-"):
			colour = red
		case strings.HasPrefix(line, "+"):
			colour = green
		}
		if colour == "" {
			out.WriteString(line)
			continue
		}
		_, _ = fmt.Fprint(&out, colour, strings.TrimSuffix(line, "\n"), reset, "\n") // A Builder has no errors.
	}
	return out.String()
}
