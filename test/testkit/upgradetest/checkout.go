// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradetest gets the source of an earlier version, and compares the server's objects before and after an upgrade.
package upgradetest

import (
	"cmp"
	"context"
	_ "embed" // of the file previous
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// previous is the commit of the previous version, which each release updates. It is empty before the first release: then the version in
// HEAD is replaced by that of the tree.
//
//go:embed previous
var previous string

// Previous checks out the previous version, and returns its folder, which is removed after the test. A revision that is not empty is used
// instead of the one in the file previous.
func Previous(t testing.TB, root, revision string) string {
	t.Helper()
	revision = cmp.Or(revision, strings.TrimSpace(previous), "HEAD")
	if _, err := Git(t.Context(), root, "cat-file", "-e", revision+"^{commit}"); err != nil {
		t.Fatalf("there is no commit %s, the previous version; a shallow clone gets it with git fetch --unshallow", revision)
	}
	return checkout(t, root, revision)
}

// checkout checks out a revision of the repository in the folder root, and returns the folder, which is removed after the test.
func checkout(t testing.TB, root, revision string) string {
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

// Git runs git in a clone, and returns its output without the white space at the end. An error contains its error output.
func Git(ctx context.Context, root string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
