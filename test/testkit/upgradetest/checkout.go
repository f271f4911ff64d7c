// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradetest gets the source of an earlier version, and compares the server's objects before and after an upgrade.
package upgradetest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Checkout checks out a revision of the repository in the folder root, and returns the folder, which is removed after the test.
func Checkout(t testing.TB, root, revision string) string {
	t.Helper()
	commit, err := Git(t.Context(), root, "rev-parse", "--verify", revision+"^{commit}")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "source")
	if _, err := Git(t.Context(), root, "clone", "--quiet", "--shared", "--no-checkout", root, folder); err != nil {
		t.Fatal(err)
	}
	if _, err := Git(t.Context(), folder, "checkout", "--quiet", commit); err != nil {
		t.Fatal(err)
	}
	return folder
}

// IsShallow reports whether a clone lacks a part of the history.
func IsShallow(t testing.TB, root string) bool {
	t.Helper()
	out, err := Git(t.Context(), root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		t.Fatal(err)
	}
	return out == "true"
}

// Git runs git in a clone, and returns its output without the white space at the end. An error contains its error output.
func Git(ctx context.Context, root string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
