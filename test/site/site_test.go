// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/pagetest"
)

const (
	latest  = "latest"
	release = "v0.1.0"
	// older and candidate are released before release.
	older, candidate = "v0.0.9", "v0.1.0-rc.1"

	repository = "https://github.com/configbutler/slipstream"
)

var (
	firstHeading = regexp.MustCompile(`(?m)^# (.+)$`)
	// plain matches lines of Markdown that are shown as they are.
	plain = regexp.MustCompile("^[A-Za-z][^`*_<>|\\[\\]\\\\&~]+$")
	// hosted matches links to files of the repository on its host.
	hosted = regexp.MustCompile(`^` + repository + `/(?:blob|tree)/([^/]+)/([^#]+)`)
)

// TestSite builds the site of the work tree.
func TestSite(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	// The program is built here, with the network if it is missing, since the site is built with proxies that refuse connections.
	if _, err := programs.Hugo.Build(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, version := range []string{latest, release} {
		build(t, root, version, folder)
	}
	site := os.DirFS(folder)
	t.Run("Pages", func(t *testing.T) { testPages(t, root, site) })
	t.Run("Menu", func(t *testing.T) { testMenu(t, root) })
	t.Run("Links", func(t *testing.T) { testLinks(t, site) })
	t.Run("Sources", func(t *testing.T) { testSources(t, root, site) })
	t.Run("Search", func(t *testing.T) { testSearch(t, root, site) })
	t.Run("Browser", func(t *testing.T) { testBrowser(t, folder) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, root) })
	t.Run("Tags", func(t *testing.T) { testTags(t, root) })
}

// build builds a version of the site.
func build(t *testing.T, root, version, folder string) {
	t.Helper()
	if out, err := site(t, root, version, folder); err != nil {
		t.Fatalf("the site of %s is not built: %v\n%s", version, err, out)
	}
}

// site runs the script that builds a version.
func site(t *testing.T, root, version, folder string) (string, error) {
	t.Helper()
	return run(t, root, filepath.Join(root, "hack", "site.sh"), version, folder)
}

// run runs a program, and returns its output. The program downloads no modules, and reaches no other host if it uses the proxies in its
// environment, as Go, Git and Hugo do.
func run(t *testing.T, folder, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = folder
	// The proxy refuses connections: nothing listens on port 1.
	command.Env = append(os.Environ(), "GOPROXY=off", "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1")
	out, err := command.CombinedOutput()
	return string(out), err
}

// markdown returns the files of the pages, by their pages in a version of the site.
func markdown(t *testing.T, root string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "charts/*/*.md"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			pages[strings.TrimSuffix(file, ".md")+".html"] = file
		}
	}
	pages["index.html"] = pages["README.html"]
	delete(pages, "README.html")
	if len(pages) < 40 {
		t.Fatalf("found only %d pages", len(pages))
	}
	return pages
}

// read returns the content of a file.
func read(t *testing.T, tree fs.FS, name string) string {
	t.Helper()
	content, err := fs.ReadFile(tree, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// title returns the first heading of a file.
func title(t *testing.T, root, file string) string {
	t.Helper()
	match := firstHeading.FindStringSubmatch(read(t, os.DirFS(root), file))
	if match == nil {
		t.Fatalf("%s has no heading", file)
	}
	return strings.ReplaceAll(match[1], "`", "")
}

// testPages checks that every file is a page with its heading, and marked in its own menu.
func testPages(t *testing.T, root string, site fs.FS) {
	documents := parsed(t, site)
	pages := markdown(t, root)
	for _, version := range []string{latest, release} {
		for page, file := range pages {
			got, exists := documents[path.Join(version, page)]
			want := title(t, root, file)
			if !exists {
				t.Errorf("%s is not in the site of %s", file, version)
			} else if !strings.HasPrefix(got.heading, want) || got.current != want {
				t.Errorf("%s has the heading %q and is %q in the menu, want %q", page, got.heading, got.current, want)
			}
		}
	}
}

// parsed returns the pages of the site.
func parsed(t *testing.T, site fs.FS) map[string]document {
	t.Helper()
	documents, err := parse(site)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// testMenu checks that the menu lists every page once.
func testMenu(t *testing.T, root string) {
	var menu []struct {
		Section string   `json:"section"`
		Pages   []string `json:"pages"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, os.DirFS(root), "hack/site/menu.yaml")), &menu); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, section := range menu {
		got = append(got, section.Pages...)
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Values(markdown(t, root))); !slices.Equal(got, want) {
		t.Errorf("hack/site/menu.yaml lists\n%q, want\n%q", got, want)
	}
}

func testLinks(t *testing.T, site fs.FS) {
	problems, err := check(site)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// testSources checks that links to files of the repository are at the version, and that the files exist.
func testSources(t *testing.T, root string, site fs.FS) {
	refs := map[string]string{latest: "main", release: release}
	found := map[string]int{}
	for page, each := range parsed(t, site) {
		version, _, _ := strings.Cut(page, "/")
		for _, link := range each.links {
			match := hosted.FindStringSubmatch(link)
			if match == nil {
				continue
			}
			found[version]++
			if match[1] != refs[version] {
				t.Errorf("%s links to %s, want the version %s", page, link, refs[version])
			}
			if _, err := os.Stat(filepath.Join(root, match[2])); err != nil {
				t.Errorf("%s links to %s: %v", page, link, err)
			}
		}
	}
	if found[latest] < 50 || found[latest] != found[release] {
		t.Errorf("the versions have %v links to files of the repository", found)
	}
}

// testSearch checks that the index has every section of every page, and a line of its text.
func testSearch(t *testing.T, root string, site fs.FS) {
	script := strings.TrimSpace(read(t, site, path.Join(release, "search-index.js")))
	script = strings.TrimSuffix(strings.TrimPrefix(script, "window.slipstreamSearch("), ");")
	var sections []struct {
		Address string `json:"address"`
		Page    string `json:"page"`
		Heading string `json:"heading"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal([]byte(script), &sections); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, section := range sections {
		page, anchor, _ := strings.Cut(section.Address, "#")
		texts[page] += " " + section.Text
		if anchor == "" || section.Page == "" || section.Heading == "" {
			t.Errorf("the index has an incomplete section %+v", section)
		}
	}
	for page, file := range markdown(t, root) {
		if line := longest(read(t, os.DirFS(root), file)); !strings.Contains(texts[page], line) {
			t.Errorf("the index of %s does not have %q", page, line)
		}
	}
}

// longest returns the longest line of Markdown that is shown as it is, with single spaces.
func longest(content string) string {
	var found string
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); plain.MatchString(line) && len(line) > len(found) {
			found = line
		}
	}
	return strings.Join(strings.Fields(found), " ")
}

// testBrowser runs the scenarios in Chromium.
func testBrowser(t *testing.T, folder string) {
	browser := pagetest.NewBrowser(t, "site.mjs")
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	addresses := map[string]string{"address": server.URL, "folder": (&url.URL{Scheme: "file", Path: folder}).String()}
	for _, scenario := range browser.Scenarios(t) {
		t.Run(scenario, func(t *testing.T) {
			browser.Run(t, scenario, func(name string, _ json.RawMessage) (any, error) {
				if address, exists := addresses[name]; exists {
					return address, nil
				}
				return nil, fmt.Errorf("there is no step %s", name)
			})
		})
	}
}
