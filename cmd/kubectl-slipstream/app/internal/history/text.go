// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
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
	_, err = io.WriteString(out, cli.Coloured(printable.Text(text), cli.IsTerminal(out)))
	return true, err
}
