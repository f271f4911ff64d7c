// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

// loading are the attributes whose targets a browser loads with the page. Those of elements in following are only links.
var (
	loading   = []string{"action", "data", "href", "poster", "src", "srcset"}
	following = []string{"a", "area"}
	// styleLoads matches what loads something in a style sheet.
	styleLoads = regexp.MustCompile(`@import|url\(`)
	// pictureLoads matches what loads something in an SVG, other than a part of the same file, and pictureRuns what runs a script.
	pictureLoads = regexp.MustCompile(`(?i)@import|url\(\s*["']?[^"'#\s]|\s(?:[\w-]+:)?(?:href|src)\s*=\s*["']?[^"'#\s]`)
	pictureRuns  = regexp.MustCompile(`(?i)<(?:[\w-]+:)?script|\son\w+\s*=`)
)

// document is what the checks need to know of a page.
type document struct {
	ids []string
	// links are followed by the reader, and loads are loaded by the browser.
	links, loads []string
	// text is the text of the first heading, and current that of the entry of the menu that is marked as this page.
	heading, current string
	// inline are scripts and styles in the page, which its policy would refuse.
	inline []string
}

// parse reads all pages of a site, by their paths.
func parse(site fs.FS) (map[string]document, error) {
	documents := map[string]document{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		file, err := site.Open(name)
		if err != nil {
			return err
		}
		root, err := html.Parse(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var d document
		for node := range root.Descendants() {
			if node.Type == html.ElementNode {
				d.add(node)
			}
		}
		documents[name] = d
		return file.Close()
	})
	return documents, err
}

// add adds an element.
func (d *document) add(node *html.Node) {
	for _, attribute := range node.Attr {
		target := strings.TrimSpace(attribute.Val)
		switch {
		case attribute.Key == "id":
			d.ids = append(d.ids, attribute.Val)
		case attribute.Key == "aria-current":
			d.current = text(node)
		case attribute.Key == "style" || strings.HasPrefix(attribute.Key, "on"):
			d.inline = append(d.inline, attribute.Key)
		case !slices.Contains(loading, attribute.Key):
		case slices.Contains(following, node.Data):
			d.links = append(d.links, target)
		default:
			d.loads = append(d.loads, target)
		}
	}
	switch {
	case node.Data == "h1" && d.heading == "":
		d.heading = text(node)
	case (node.Data == "script" || node.Data == "style") && node.FirstChild != nil:
		d.inline = append(d.inline, node.Data)
	}
}

// text returns the text of an element, with single spaces.
func text(node *html.Node) string {
	var b strings.Builder
	for each := range node.Descendants() {
		if each.Type == html.TextNode {
			b.WriteString(each.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// check returns what is wrong with the links of a site, and with what it loads.
func check(site fs.FS) ([]string, error) {
	documents, err := parse(site)
	if err != nil {
		return nil, err
	}
	var problems []string
	for name, d := range documents {
		for _, each := range d.inline {
			problems = append(problems, fmt.Sprintf("%s has an inline %s", name, each))
		}
		seen := slices.Sorted(slices.Values(d.ids))
		if compact := slices.Compact(slices.Clone(seen)); len(compact) != len(seen) {
			problems = append(problems, name+" has an id twice")
		}
		for _, target := range d.loads {
			problems = append(problems, resolve(site, documents, name, target, true)...)
		}
		for _, target := range d.links {
			problems = append(problems, resolve(site, documents, name, target, false)...)
		}
	}
	files, err := checkFiles(site)
	slices.Sort(problems)
	return append(slices.Compact(problems), files...), err
}

// resolve returns why a target of a page does not exist in the site. Only links may lead to other hosts.
func resolve(site fs.FS, documents map[string]document, name, target string, loaded bool) []string {
	parsed, err := url.Parse(target)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("%s has the link %s: %v", name, target, err)}
	case parsed.Scheme != "" || parsed.Host != "":
		if !loaded && (parsed.Scheme == "https" || parsed.Scheme == "http" || parsed.Scheme == "mailto") {
			return nil
		}
		return []string{fmt.Sprintf("%s loads %s", name, target)}
	case strings.HasPrefix(parsed.Path, "/"):
		return []string{fmt.Sprintf("%s has the link %s, which depends on where the site is", name, target)}
	}
	file := name
	if parsed.Path != "" {
		file = path.Join(path.Dir(name), parsed.Path)
	}
	if info, err := fs.Stat(site, file); err != nil || info.IsDir() {
		return []string{fmt.Sprintf("%s has the link %s, but there is no file %s", name, target, file)}
	}
	if parsed.Fragment != "" && !slices.Contains(documents[file].ids, parsed.Fragment) {
		return []string{fmt.Sprintf("%s has the link %s, but %s has no such id", name, target, file)}
	}
	return nil
}

// checkFiles returns the style sheets that load something, and the SVGs that load something or run a script.
func checkFiles(site fs.FS) ([]string, error) {
	var problems []string
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		suffix := path.Ext(name)
		if err != nil || (suffix != ".css" && suffix != ".svg") {
			return err
		}
		content, err := fs.ReadFile(site, name)
		if (suffix == ".css" && styleLoads.Match(content)) || (suffix == ".svg" && pictureLoads.Match(content)) {
			problems = append(problems, name+" loads something")
		}
		if suffix == ".svg" && pictureRuns.Match(content) {
			problems = append(problems, name+" runs a script")
		}
		return err
	})
	return problems, err
}

func TestCheckFindsProblems(t *testing.T) {
	for content, want := range map[string]string{
		`<a href="other.html#there">`:                      "",
		`<a href="https://example.com/x#y">`:               "",
		`<img src="a/b.svg"><h1 id=a></h1><a href="#a">`:   "",
		`<a href="missing.html">`:                          "page.html has the link missing.html, but there is no file missing.html",
		`<a href="a">`:                                     "page.html has the link a, but there is no file a",
		`<a href="other.html#missing">`:                    "page.html has the link other.html#missing, but other.html has no such id",
		`<a href="#missing">`:                              "page.html has the link #missing, but page.html has no such id",
		`<a href="/other.html">`:                           "page.html has the link /other.html, which depends on where the site is",
		`<a href="javascript:alert()">`:                    "page.html loads javascript:alert()",
		`<img src="https://example.com/x.svg">`:            "page.html loads https://example.com/x.svg",
		`<picture><source srcset="//example.com/x.webp">`:  "page.html loads //example.com/x.webp",
		`<link rel=stylesheet href="https://a.example/a">`: "page.html loads https://a.example/a",
		`<script>alert()</script>`:                         "page.html has an inline script",
		`<p id=a></p><p id=a></p>`:                         "page.html has an id twice",
	} {
		site := fstest.MapFS{
			"page.html":  {Data: []byte(content)},
			"other.html": {Data: []byte(`<h2 id="there">There</h2>`)},
			"a/b.svg":    {},
		}
		got, err := check(site)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
	if _, err := check(os.DirFS("missing")); err == nil {
		t.Error("no error without a site")
	}
}

func TestCheckFindsProblemsOfFiles(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"a.css", `a { background: url(https://example.com) }`, "a.css loads something"},
		{"a.css", `a { color: red }`, ""},
		{"a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><style>.on { fill: red }</style><use href="#a"/><path marker-end="url(#head)"/></svg>`, ""},
		{"a.svg", `<svg><script>alert()</script></svg>`, "a.svg runs a script"},
		{"a.svg", `<svg onload = "alert()"/>`, "a.svg runs a script"},
		{"a.svg", `<svg><image xlink:href="https://example.com/x.png"/></svg>`, "a.svg loads something"},
		{"a.svg", `<svg><a href='javascript:alert()'/></svg>`, "a.svg loads something"},
		{"a.svg", `<svg><style>@import "x.css";</style></svg>`, "a.svg loads something"},
		{"a.svg", `<svg><path fill="url('https://example.com/x.svg#a')"/></svg>`, "a.svg loads something"},
	} {
		got, err := check(fstest.MapFS{test.name: {Data: []byte(test.content)}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s: got %q, want %q", test.content, got, test.want)
		}
	}
}
