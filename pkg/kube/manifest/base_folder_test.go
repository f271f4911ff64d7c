// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func TestCleanBaseFolder(t *testing.T) {
	tests := map[string]string{
		"":                   "",
		".":                  "",
		"./":                 "",
		"clusters":           "clusters",
		"clusters/prod":      "clusters/prod",
		"clusters/prod/":     "clusters/prod",
		"./clusters//prod":   "clusters/prod",
		"Clusters/EU West":   "Clusters/EU West",
		".cluster/a..b/...a": ".cluster/a..b/...a",
		"überall":            "überall",
	}
	for folder, want := range tests {
		got, err := CleanBaseFolder(folder)
		if err != nil || got != want {
			t.Errorf("CleanBaseFolder(%q) = %q, %v; want %q", folder, got, err, want)
		}
		if again, err := CleanBaseFolder(got); err != nil || again != got {
			t.Errorf("CleanBaseFolder(%q) = %q, %v; want it unchanged", got, again, err)
		}
	}
}

func TestCleanBaseFolderRefuses(t *testing.T) {
	folders := []string{
		"/", "/etc", "..", "../a", "a/..", "a/../b", "a/b/../../..", ".git",
		"a/.git/hooks", ".GIT", "a/Git~1", ".git.", ".git ", " .git", ".g\u200cit",
		`a\b`, `..\a`, "C:", "a:b", "a*", "a?", "a|b", `"a"`, "<a>", "a\nb", "a\x00",
		"a\x7f", "a\u0085", "a\xff", "a/ b", "a /b", "a./b", "a/con", "NUL.txt",
		strings.Repeat("a", 256), strings.Repeat("a/", 600), "a/con .b", "CONIN$", "a/com¹",
	}
	for _, folder := range folders {
		if got, err := CleanBaseFolder(folder); err == nil {
			t.Errorf("CleanBaseFolder(%q) = %q, want an error", folder, got)
		}
	}
}

// A folder that Git reads as its own is refused in any segment and by its reason.
func TestCleanBaseFolderRefusesNamesOfGit(t *testing.T) {
	for name, own := range map[string]string{
		".git": ".git", ".GIT": ".git", "git~1": ".git", ".gitmodules": ".gitmodules", ".GitModules": ".gitmodules", "GITMOD~1": ".gitmodules",
		"gi7eba~1": ".gitmodules", "gi7e~123": ".gitmodules", ".gitattributes": ".gitattributes",
		"gitatt~4": ".gitattributes", "gi7d29~2": ".gitattributes",
		".gitignore": ".gitignore", "gitign~1": ".gitignore", ".mailmap": ".mailmap", "maba30~1": ".mailmap",
	} {
		for _, folder := range []string{name, name + "/a", "a/" + name, "a/" + name + "/b"} {
			want := fmt.Sprintf("base folder %q must not have the segment %q, which Git can take for its own %s", folder, name, own)
			if got, err := CleanBaseFolder(folder); err == nil || err.Error() != want {
				t.Errorf("CleanBaseFolder(%q) = %q, %v; want the error %q", folder, got, err, want)
			}
		}
	}
}

func TestFoldersOverlap(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"a", "a", true},
		{"a", "A/", true},
		{"a", "a/b", true},
		{"a/b/c", "a/B", true},
		{"", "a", true},
		{"", "", true},
		{".", "a", true},
		{"a", "b", false},
		{"a", "ab", false},
		{"a/b", "a/bc", false},
		{"a/b", "a/c", false},
		{"a/b/c", "a/c/b", false},
	}
	for _, test := range tests {
		for _, pair := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
			if got := FoldersOverlap(pair[0], pair[1]); got != test.want {
				t.Errorf("FoldersOverlap(%q, %q) = %v, want %v", pair[0], pair[1], got, test.want)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	for folder, want := range map[string]string{"": "core/v1/nodes/a.yaml", "clusters/prod": "clusters/prod/core/v1/nodes/a.yaml"} {
		if got := Join(folder, "core/v1/nodes/a.yaml"); got != want {
			t.Errorf("Join(%q) = %q, want %q", folder, got, want)
		}
	}
}
