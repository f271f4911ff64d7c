// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitname_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// reserved are names of each form, by what Git reads them as.
var reserved = map[string][]string{
	".git": {
		".git", ".GIT", ".gIt", ".git.", ".git ", ".git. . .", "git~1", "GIT~1",
		"git~1 .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1:x", ".git\\x",
		"a\\.git", "a\\git~1", ".g\u200cit", "\ufeff.git", ".git\u206f", "\u200e.\u202agi\u202et",
	},
	".gitmodules": {
		".gitmodules", ".GitModules", ".gitmodules .", ".gitmodules::$DATA", "gitmod~1",
		"GITMOD~4", "gitmod~2. ", "gi7eba~1", "GI7EBA~9", "gi7eb~12", "gi7e~123",
		"g~123456", "~1234567", ".git\u200cmodules", ".gitmodules\ufeff", "a\\.gitmodules",
	},
	".gitattributes": {".gitattributes", ".GITATTRIBUTES ", "gitatt~1", "gi7d29~3", "gi7d~999", ".gitattributes:x", ".\u202egitattributes"},
	".gitignore":     {".gitignore", ".gitignore...", "GITIGN~3", "gi250a~1", "gi2~1000", ".gitignore\u200d"},
	".mailmap":       {".mailmap", ".MailMap", "mailma~1", "maba30~7", "mab~1234", ".mail\u206amap"},
}

// free are names that look like those and are not reserved.
var free = []string{
	"", "a", ".", "..", ".gi", ".gita", "git", "git~2", "git~11", "gitmodules",
	".gitmodulesx", ".gitmodule", "gitmod~0", "gitmod~5", "gitmod~11", "gitmo~1",
	"gi7eba~0", "gi7eba~", "gi7eba~10", "gi7ebx~1", "gi7eb~1", "gi7ebaa~1", "gi7eb~0a",
	".gitkeep", ".github", ".gitlab", "x.gitmodules", ".mailmaps", "~123456",
	"~12345678", "maba31~1", ".g\u00adit", ".gitmoduleſ", "~", "gitmod~", ".gitmodules~1",
}

func TestReserved(t *testing.T) {
	for want, names := range reserved {
		for _, name := range names {
			if got := gitname.Reserved(name); got != want {
				t.Errorf("Reserved(%q) = %q, want %q", name, got, want)
			}
		}
	}
	for _, name := range free {
		if got := gitname.Reserved(name); got != "" {
			t.Errorf("Reserved(%q) = %q, want none", name, got)
		}
	}
}

func TestIsDevice(t *testing.T) {
	for _, name := range []string{
		"con", "CON", "Nul.txt", "aux.a.b", "prn ", "con .x", "com1", "LPT9.yaml", "com¹", "lpt³", "conin$", "CONOUT$", "nul:x", "com0",
	} {
		if !gitname.IsDevice(name) {
			t.Errorf("IsDevice(%q) = false", name)
		}
	}
	for _, name := range []string{"", "console", "com", "com10", "coma", "com⁴", "acon", "a.con", " con", "conin", "lpt", ".con"} {
		if gitname.IsDevice(name) {
			t.Errorf("IsDevice(%q) = true", name)
		}
	}
}

// judge is a repository in which Git gives its opinion about directories of odd names.
type judge struct {
	t    *testing.T
	path string
	blob string
}

func newJudge(t *testing.T) judge {
	t.Helper()
	j := judge{t: t, path: t.TempDir()}
	j.must("", "init", "--quiet")
	j.blob = j.must("x\n", "hash-object", "-w", "--stdin")
	return j
}

func (j judge) git(input string, arguments ...string) (string, error) {
	command := exec.CommandContext(j.t.Context(), "git", arguments...)
	command.Dir, command.Stdin = j.path, strings.NewReader(input)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func (j judge) must(input string, arguments ...string) string {
	j.t.Helper()
	output, err := j.git(input, arguments...)
	if err != nil {
		j.t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
	return output
}

// refuses reports whether Git refuses a tree with a directory of the name, or a file or link in its place: by fsck, or by
// what it does before it writes an index.
func (j judge) refuses(name string) bool {
	j.t.Helper()
	// It leaves out what it refuses, and then there is no index to remove.
	j.must(fmt.Sprintf("100644 %s\t%s/a\x00", j.blob, name), "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true", "update-index",
		"-z", "--index-info")
	if os.Remove(filepath.Join(j.path, ".git", "index")) != nil {
		return true
	}
	below := j.must(fmt.Sprintf("100644 blob %s\ta\x00", j.blob), "mktree", "-z")
	for _, entry := range []string{"040000 tree " + below, "120000 blob " + j.blob} {
		tree := j.must(fmt.Sprintf("%s\t%s\x00", entry, name), "mktree", "-z")
		// What fsck only informs about ends without an error.
		findings, err := j.git("", "fsck", "--strict", "--no-dangling", tree)
		// The next tree is judged alone: fsck looks at all objects.
		j.must("", "prune", "--expire=now")
		j.must("x\n", "hash-object", "-w", "--stdin")
		if err != nil || strings.Contains(findings, tree) {
			return true
		}
	}
	return false
}

// TestGitAgrees compares the rules with Git's own. What is refused although Git does not is listed.
func TestGitAgrees(t *testing.T) {
	j := newJudge(t)
	for own, names := range reserved {
		for _, name := range names {
			// Git looks behind a backslash for .git alone where it checks trees, and checks no symbolic link there.
			if own != ".git" && strings.Contains(name, `\`) {
				continue
			}
			if !j.refuses(name) {
				t.Errorf("Git accepts %q, which is refused as %s", name, own)
			}
		}
	}
	for _, name := range free {
		if name == "" || name == "." || name == ".." {
			continue // they are no elements of a path
		}
		if j.refuses(name) {
			t.Errorf("Git refuses %q, which is accepted", name)
		}
	}
}

func FuzzReserved(f *testing.F) {
	for _, names := range reserved {
		for _, name := range names {
			f.Add(name)
		}
	}
	for _, name := range free {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		own := gitname.Reserved(name)
		for _, other := range []string{strings.ToUpper(name), name + ".", name + " ", name + ":x", "\u200c" + name, name + "\ufeff"} {
			if got := gitname.Reserved(other); own != "" && got == "" {
				t.Errorf("Reserved(%q) = %q, but %q is free", name, own, other)
			}
		}
	})
}
