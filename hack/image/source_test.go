// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// newSource creates a repository with trivial programs, committed at a fixed time.
func newSource(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                         "module example.org/tiny\n\ngo 1.26.0\n",
		"cmd/slipstream/main.go":         "package main\n\nfunc main() {}\n",
		"cmd/kubectl-slipstream/main.go": "package main\n\nfunc main() { println() }\n",
	} {
		writeFile(t, filepath.Join(source, name), content)
	}
	git(t, source, "init", "--quiet", "--initial-branch=main")
	git(t, source, "add", ".")
	git(t, source, "commit", "--quiet", "--message=Begin")
	return source
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, folder string, arguments ...string) {
	t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2020-02-03T04:05:06Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2020-02-03T04:05:06Z")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
}
