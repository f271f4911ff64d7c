// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newChecked writes a release of a commit in a new repository.
func newChecked(t *testing.T) settings {
	t.Helper()
	s := settings{source: t.TempDir(), output: t.TempDir(), version: "v1.2.3"}
	git(t, s.source, "init", "--quiet", "--initial-branch=main")
	for _, name := range dependencies {
		writeFile(t, filepath.Join(s.source, name), name)
	}
	git(t, s.source, "add", ".")
	git(t, s.source, "commit", "--quiet", "--message=Begin")
	git(t, s.source, "tag", s.version)
	images, err := writeImages(newImages(t), s.output, at)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(s.output, "slipstream-1.2.3.tgz"), "chart")
	if err := writeSums(s.output); err != nil {
		t.Fatal(err)
	}
	from, err := readCommit(t.Context(), s.source)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeProvenance(t.Context(), s, from, images); err != nil {
		t.Fatal(err)
	}
	return s
}

func git(t *testing.T, folder string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
}

// TestCheck accepts a release, and what an earlier attempt to sign has left.
func TestCheck(t *testing.T) {
	s := newChecked(t)
	for _, name := range []string{"SHA256SUMS.sigstore.json", "slipstream.oci.tar.sigstore.json", "provenance.sigstore.json", "cosign.pub"} {
		writeFile(t, filepath.Join(s.output, name), "")
	}
	got, err := check(t.Context(), s)
	want := []image{newImage("slipstream", digest), newImage("slipstream-dashboard", digest)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(image{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(t *testing.T, s *settings)
		want   string
	}{
		"another byte":      {add("slipstream-1.2.3.tgz", "x"), "slipstream-1.2.3.tgz has another sum than in SHA256SUMS"},
		"another file":      {add("evil.txt", "x"), "evil.txt has no line in SHA256SUMS"},
		"another bundle":    {add("evil.txt.sigstore.json", "x"), "evil.txt.sigstore.json has no line"},
		"a missing file":    {add("SHA256SUMS", strings.Repeat("0", 64)+"  a.txt\n"), "SHA256SUMS has a.txt, which is not there"},
		"a path":            {add("SHA256SUMS", strings.Repeat("0", 64)+"  ../a.txt\n"), `SHA256SUMS has the line "000`},
		"a line twice":      {func(t *testing.T, s *settings) { add(sumsFile, read(t, s, sumsFile))(t, s) }, "SHA256SUMS has the line"},
		"a folder":          {add(filepath.Join("folder", "a"), ""), "folder is"},
		"another tag":       {func(_ *testing.T, s *settings) { s.version = "v1.2.4" }, `does not have slipstream-1.2.4.tgz, the chart of "v1.2.4"`},
		"another commit":    {moveTag, "the first source is not"},
		"another version":   {replace(`"version": "v1.2.3"`, `"version": "v1.2.2"`), `the version is "v1.2.2", want "v1.2.3"`},
		"another digest":    {replace(strings.TrimPrefix(digest, "sha256:"), strings.Repeat("1", 64)), "the subject ghcr.io/configbutler/slipstream has the digest 111"},
		"another subject":   {subjectsOf(func(r []resource) []resource { return append(r, resource{Name: "x"}) }), "the subject x has the digest"},
		"a missing subject": {subjectsOf(func(r []resource) []resource { return r[1:] }), "SHA256SUMS is not a subject"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newChecked(t)
			test.damage(t, &s)
			if _, err := check(t.Context(), s); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// add appends to a file of the release, or makes it.
func add(name, text string) func(t *testing.T, s *settings) {
	return func(t *testing.T, s *settings) {
		t.Helper()
		path := filepath.Join(s.output, name)
		before, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		writeFile(t, path, string(before)+text)
	}
}

func read(t *testing.T, s *settings, name string) string {
	t.Helper()
	return contents(t, s.output)[name]
}

// replace replaces a text in the provenance.
func replace(from, to string) func(t *testing.T, s *settings) {
	return func(t *testing.T, s *settings) {
		t.Helper()
		writeFile(t, filepath.Join(s.output, provenanceFile), strings.ReplaceAll(read(t, s, provenanceFile), from, to))
	}
}

// subjectsOf changes the subjects of the provenance.
func subjectsOf(change func([]resource) []resource) func(t *testing.T, s *settings) {
	return func(t *testing.T, s *settings) {
		t.Helper()
		path := filepath.Join(s.output, provenanceFile)
		about, err := readStatement(path)
		if err != nil {
			t.Fatal(err)
		}
		about.Subject = change(about.Subject)
		content, err := json.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, string(content))
	}
}

func moveTag(t *testing.T, s *settings) {
	t.Helper()
	git(t, s.source, "commit", "--quiet", "--allow-empty", "--message=Go on")
	git(t, s.source, "tag", "--force", s.version)
}
