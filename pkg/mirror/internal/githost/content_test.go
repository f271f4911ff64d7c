// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

func TestLongTexts(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		line := "| apps/Deployment/ä🦀 | changed |\n"
		content := f.content()
		content.Title = strings.Repeat("🦀ä ", 300)
		content.Body = strings.Repeat(line, 200000/len(line))
		created := f.create(content)
		stored := f.only()
		lines := strings.SplitAfter(strings.TrimRight(stored.Body, "\n"), "\n")
		note := lines[len(lines)-1]
		if !strings.HasPrefix(note, "*") || !strings.Contains(note, "The rest is left out.") || !utf8.ValidString(stored.Body) {
			f.Errorf("the last line is %q", note)
		}
		for _, got := range lines[:len(lines)-2] {
			if got != line {
				f.Fatalf("a line is %q", got)
			}
		}
		if f.Kind() == githosttest.AzureDevOps && len(utf16.Encode([]rune(stored.Body))) < 3500 {
			f.Errorf("only %d bytes are left of the body", len(stored.Body))
		}
		if !strings.HasSuffix(created.Title, "…") || !created.Draft {
			f.Errorf("the title is %q", created.Title)
		}
		before := writes(f.Calls())
		if _, err := f.host.Update(f.Context(), f.get(created.Number), content); err != nil || writes(f.Calls()) != before {
			f.Errorf("an update with the same content wrote: %v, %v", f.Calls(), err)
		}
		if err := f.host.Comment(f.Context(), created.Number, "a", content.Body); err != nil {
			f.Fatal(err)
		}
		if comment := f.only().Comments[0]; !strings.HasSuffix(comment, "left out.*\n\n\n<!-- slipstream:a -->") {
			f.Errorf("the comment ends with %q", comment[len(comment)-200:])
		}
	})
}

func TestTitles(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		for title, want := range map[string]string{
			"\ntwo\nlines\tand \x00 controls\n": "two lines and controls",
			"\xffbad":                           "\ufffdbad",
		} {
			content := f.content()
			content.Title, content.Draft = title, false
			created := f.create(content)
			if stored := f.PullRequests()[0].Title; stored != want || created.Title != want {
				f.Errorf("the title of %q is %q", title, stored)
			}
			f.Delete(created.Number)
		}
	})
}

func TestTitleThatMarksADraft(t *testing.T) {
	for kind, titles := range map[githosttest.Kind][]string{
		githosttest.GitLab: {"Draft: x", "[draft] x", "(Draft)x", "draft:draft: x"},
		githosttest.Gitea:  {"WIP: x", "[wip]x", "wip: [WIP] x"},
	} {
		for _, title := range titles {
			f := newFixture(t, kind)
			content := f.content()
			content.Title, content.Draft = title, false
			if created := f.create(content); created.Draft || created.Title != "x" || f.only().Title != "x" {
				t.Errorf("%s: %q becomes %+v", kind, title, created)
			}
		}
	}
}

// TestQuickActions shows that names in a text do not become commands, which the host would execute with the rights of the token.
func TestQuickActions(t *testing.T) {
	f := newFixture(t, githosttest.GitLab)
	content := f.content()
	content.Body = "first\n/merge\n  /close\n> /close\n/\n/etc is a path\n"
	created := f.create(content)
	if err := f.host.Comment(t.Context(), created.Number, "a", "/merge\n/close"); err != nil {
		t.Fatal(err)
	}
	if stored := f.only(); stored.State != githosttest.Open || !strings.Contains(stored.Body, "\n\\/merge\n") {
		t.Errorf("the host has %+v", stored)
	}
	before := writes(f.Calls())
	if _, err := f.host.Update(t.Context(), f.get(created.Number), content); err != nil || writes(f.Calls()) != before {
		t.Errorf("an update with the same content wrote: %v, %v", f.Calls(), err)
	}
	content.Body += "/close\n"
	if _, err := f.host.Update(t.Context(), f.get(created.Number), content); err != nil || f.only().State != githosttest.Open {
		t.Errorf("after an update, the host has %+v: %v", f.only(), err)
	}
}

func TestGitLabLabelsWithCommas(t *testing.T) {
	f := newFixture(t, githosttest.GitLab)
	content := f.content()
	content.Labels = []string{"a,b"}
	_, err := f.host.Create(t.Context(), branch, githosttest.Base, content)
	wantError(t, err, githost.Invalid, "comma")
}

func TestAzureReviewersAreIdentifiers(t *testing.T) {
	f := newFixture(t, githosttest.AzureDevOps)
	content := f.content()
	content.Reviewers = []string{"alice/../.."}
	_, err := f.host.Create(t.Context(), branch, githosttest.Base, content)
	wantError(t, err, githost.Invalid, "GUID")
}

func TestGitHubCannotChangeDrafts(t *testing.T) {
	f := newFixture(t, githosttest.GitHub)
	created := f.create(f.content())
	content := f.content()
	content.Draft, content.Labels = false, append(content.Labels, "more")
	for kind, want := range map[string]githost.ErrorKind{
		"FORBIDDEN": githost.Unauthorized, "NOT_FOUND": githost.NotFound, "RATE_LIMITED": githost.RateLimited, "": githost.Refused,
	} {
		f.FailAt(1, githosttest.Before, githosttest.Respond(200, `{"errors":[{"type":"`+kind+`","message":"`+githosttest.Token+`"}]}`))
		updated, err := f.host.Update(t.Context(), created, content)
		wantError(t, err, want, "draft: [REDACTED]")
		if updated == nil || !updated.Draft || !same(f.only().Labels, content.Labels) {
			t.Errorf("Update returns %+v, the host has %+v", updated, f.only())
		}
	}
}
