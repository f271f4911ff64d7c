// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// TestRefusedCommits checks that nothing is built from a commit with another, higher version, from one that is not merged, and beside files
// that are not committed, even if git does not show them.
func TestRefusedCommits(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	version := tagged(t, root, clone)
	higher := strings.TrimSuffix(version, "0") + "9"
	output := filepath.Join(t.TempDir(), "dist")
	refuses := func(name, want string) {
		t.Helper()
		if printed, err := attempt(t, clone, "hack/release.sh", version, output); err == nil || !strings.Contains(printed, want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, want, printed)
		}
	}
	do(t, clone, "git", "-c", "tag.gpgSign=false", "tag", higher)
	refuses("a higher tag", "error: the commit also has the tag "+higher)
	do(t, clone, "git", "tag", "--delete", higher)

	do(t, clone, "git", "config", "status.showUntrackedFiles", "no")
	extra := filepath.Join(clone, "cmd", "slipstream", "zz_extra.go")
	write(t, extra, "package main\n")
	refuses("a file that git does not show", "zz_extra.go")
	do(t, clone, "rm", extra)

	// Lower tags are no obstacle, and neither is the tag itself: only the last check of the commit refuses it.
	do(t, clone, "git", "-c", "tag.gpgSign=false", "tag", version+"-rc.1")
	t.Setenv("RELEASE_MERGED", "1")
	refuses("a commit that is not merged", "error: the commit is neither on main nor on a branch release-* of origin")
	do(t, clone, "git", "update-ref", "refs/remotes/origin/release-0.1", "HEAD")
	write(t, filepath.Join(output, "a"), "")
	refuses("a folder that is not empty", "is not empty")
}
