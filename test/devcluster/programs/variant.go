// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Replacement is a text of a source file that a variant of a program has another text for.
type Replacement struct {
	// File is relative to the root of the module.
	File string
	// Old is in the file exactly once.
	Old, New string
}

// Variant builds a program of the module with some texts of its source replaced, such as another version, and returns its path. It is built
// in folder, without cgo, like the programs of the image and of most tests, so that their compiled packages are used; the source stays as it is.
func Variant(ctx context.Context, root, path, folder string, replacements ...Replacement) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, each := range replacements {
		file := filepath.Join(root, each.File)
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if count := strings.Count(string(source), each.Old); count != 1 {
			return "", fmt.Errorf("%s has %q %d times, want once", each.File, each.Old, count)
		}
		replaced := filepath.Join(folder, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replaced, []byte(strings.Replace(string(source), each.Old, each.New, 1)), 0o600); err != nil {
			return "", err
		}
		if overlay.Replace[file] != "" {
			return "", fmt.Errorf("%s has two replacements", each.File)
		}
		overlay.Replace[file] = replaced
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, content, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(folder, filepath.Base(path))
	if _, err := runGoWith(ctx, root, []string{"CGO_ENABLED=0"}, "build", "-o", program, "-overlay="+list, "./"+path); err != nil {
		return "", fmt.Errorf("failed to build a variant of %s: %w", path, err)
	}
	return program, nil
}
