// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testVersions checks which versions are listed, and that the newest release is the first page of the site.
func testVersions(t *testing.T, root string) {
	folder := t.TempDir()
	for _, each := range []string{older, candidate, latest, "v0.10.0", "other"} {
		write(t, filepath.Join(folder, each, "index.html"))
	}
	build(t, root, release, folder)
	index := read(t, os.DirFS(folder), "index.html")
	if want := `content="0; url=v0.10.0/index.html"`; !strings.Contains(index, want) {
		t.Errorf("index.html does not redirect with %s:\n%s", want, index)
	}
	got := parsed(t, os.DirFS(folder))["versions.html"].links
	want := []string{"v0.10.0/index.html", "v0.1.0/index.html", "v0.1.0-rc.1/index.html", "v0.0.9/index.html", "latest/index.html"}
	if !slices.Equal(got, want) {
		t.Errorf("versions.html links to %q, want %q", got, want)
	}
	for _, version := range []string{"", "main", "v1", "../v1.0.0", "v1.0.0/.."} {
		if out, err := site(t, root, version, folder); err == nil || !strings.Contains(out, "VERSION is neither latest nor like v1.2.3") {
			t.Errorf("VERSION %q is accepted: %v\n%s", version, err, out)
		}
	}
}

// testTags builds the releases of a clone from their tags. Releases without the site, and tags that are not versions, are left out. A broken
// link, and one with a scheme that can run a script, are errors.
func testTags(t *testing.T, root string) {
	clone, folder := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	git := func(arguments ...string) string {
		t.Helper()
		settings := []string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "core.hooksPath=/dev/null"}
		out, err := run(t, clone, "git", append(settings, arguments...)...)
		if err != nil {
			t.Fatalf("git %q: %v\n%s", arguments, err, out)
		}
		return strings.TrimSpace(out)
	}
	if out, err := run(t, root, "git", "clone", "--quiet", "--shared", "--no-tags", root, clone); err != nil {
		t.Fatalf("the clone: %v\n%s", err, out)
	}
	git("tag", "v0.0.1", git("commit-tree", "-m", "Empty", git("hash-object", "-t", "tree", "-w", "/dev/null")))
	git("--work-tree="+root, "add", "--all")
	git("commit", "--quiet", "--allow-empty", "--message", "Work")
	for _, tag := range []string{release, "v1", "v1.0.0+build", "other"} {
		git("tag", tag)
	}
	git("reset", "--quiet", "--hard")
	tour := filepath.Join(clone, "docs", "tour.md")
	if err := os.WriteFile(tour, []byte("# A new tour\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(clone, "hack", "site-versions.sh")
	if out, err := run(t, clone, script, folder); err != nil {
		t.Fatalf("the sites are not built: %v\n%s", err, out)
	}
	documents := parsed(t, os.DirFS(folder))
	if got, want := documents["versions.html"].links, []string{release + "/index.html", latest + "/index.html"}; !slices.Equal(got, want) {
		t.Errorf("versions.html links to %q, want %q", got, want)
	}
	for version, want := range map[string]string{release: title(t, root, "docs/tour.md"), latest: "A new tour"} {
		if got := documents[version+"/docs/tour.html"].current; got != want {
			t.Errorf("%s has the tour %q, want %q", version, got, want)
		}
	}
	testReleases(t, clone)
	if err := os.WriteFile(tour, []byte("# A tour\n\n[A link](missing.md), [a script](JavaScript:alert(1)), <data:text/html,x>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := site(t, clone, latest, folder)
	for _, want := range []string{
		"links to missing.md, which does not exist", "links to JavaScript:alert(1), whose scheme is not", "links to data:text/html,x, whose scheme is not",
	} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("got %v, want %q in\n%s", err, want, out)
		}
	}
}

// testReleases builds only the releases of a clone that the caller names.
func testReleases(t *testing.T, clone string) {
	folder := t.TempDir()
	if out, err := run(t, clone, "env", "SITE_RELEASES=v0.0.1\nv1", "make", "site-versions", "SITE_OUTPUT="+folder); err != nil {
		t.Fatalf("the sites are not built: %v\n%s", err, out)
	}
	if got, want := parsed(t, os.DirFS(folder))["versions.html"].links, []string{latest + "/index.html"}; !slices.Equal(got, want) {
		t.Errorf("versions.html links to %q, want %q", got, want)
	}
	out, err := run(t, clone, "env", "SITE_RELEASES=v0.0.1 "+candidate, "make", "site-versions", "SITE_OUTPUT="+folder)
	if err == nil || !strings.Contains(out, "there is no tag "+candidate) {
		t.Errorf("a release without a tag is accepted: %v\n%s", err, out)
	}
}

// write writes an empty file and its folder.
func write(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
