// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git runs Git in a repository without the settings of any user.
func git(t *testing.T, repository, input string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git",
		append([]string{"-c", "core.protectNTFS=true", "-c", "core.protectHFS=true"}, arguments...)...)
	command.Dir, command.Stdin = repository, strings.NewReader(input)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
	return strings.TrimSpace(string(output))
}

// oddNames are forms of names that mean something to Git or to a file system, each with every odd character at every place.
func oddNames() []string {
	odd := []string{"", ".", " ", "~", "~1", ":", "::$DATA", `\`, "\u200c", "\u200d", "\u200e", "\u202e", "\u206f", "\ufeff", "\u00ad",
		"\u0301", "ſ", "İ", "é", "\U000e0041", "x",
		"\n", "\x1b[31m", "\u0085"}
	var names []string
	for _, name := range []string{
		".git", "git~1", ".gitmodules", "gitmod~1", "gi7eba~1", "gi7e~123",
		".gitattributes", "gi7d29~1", ".gitignore", "gi250a~1", ".mailmap", "maba30~1",
		"con", "com1", "nul.a", "conin$", "a", "...", ".github", "..a",
	} {
		for at := range len(name) + 1 {
			for _, insert := range odd {
				names = append(names, name[:at]+insert+name[at:], strings.ToUpper(name[:at])+insert+name[at:])
			}
		}
	}
	return names
}

// TestGitTakesEveryPath lets Git check a tree of every path that is accepted, as a server and a client do.
func TestGitTakesEveryPath(t *testing.T) {
	paths := map[string]bool{}
	refused := 0
	for _, name := range oddNames() {
		for _, folder := range []string{name, "clusters/" + name + "/prod"} {
			clean, err := CleanBaseFolder(folder)
			if err != nil {
				refused++
				continue
			}
			paths[Join(clean, "core/v1/nodes/a.yaml")] = true
		}
		location := Location{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: name}
		file, err := location.Path()
		if err != nil {
			continue // the API has no such name
		}
		paths[file] = true
	}
	if refused == 0 {
		t.Error("no folder was refused")
	}
	repository := t.TempDir()
	git(t, repository, "", "init", "--quiet")
	blob := git(t, repository, "x\n", "hash-object", "-w", "--stdin")
	var index strings.Builder
	for path := range paths {
		fmt.Fprintf(&index, "100644 %s\t%s\x00", blob, path)
	}
	if output := git(t, repository, index.String(), "update-index", "-z", "--index-info"); output != "" {
		t.Errorf("Git leaves out paths:\n%s", output)
	}
	commit := git(t, repository, "", "commit-tree", "-m", "a", git(t, repository, "", "write-tree"))
	git(t, repository, "", "update-ref", "HEAD", commit)
	if output := git(t, repository, "", "fsck", "--strict"); output != "" {
		t.Errorf("fsck says:\n%s", output)
	}
	git(t, repository, "", "checkout", "--quiet", "--force", "HEAD")
	for path := range paths {
		if _, err := os.Lstat(filepath.Join(repository, filepath.FromSlash(path))); err != nil {
			t.Errorf("a checkout lacks a file: %v", err)
		}
	}
}
