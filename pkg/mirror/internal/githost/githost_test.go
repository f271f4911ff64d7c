// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

func TestCreate(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		content := f.content()
		created := f.create(content)
		stored, read := f.only(), f.get(created.Number)
		if stored.Head != branch || stored.Base != githosttest.Base || stored.Body != content.Body || !same(stored.Labels, content.Labels) ||
			len(stored.Reviewers) != len(content.Reviewers) {
			f.Errorf("the host has %+v", stored)
		}
		for name, got := range map[string]*githost.PullRequest{"Create": created, "Get": read} {
			if got.Number != stored.Number || got.Title != content.Title || got.Body != content.Body || !got.Draft || got.State != githost.Open ||
				got.Head != branch || got.Base != githosttest.Base || got.HeadSHA != stored.HeadSHA || !got.Created.Equal(stored.Created) ||
				!got.Ended.IsZero() || got.EndedBy != "" || !same(got.Labels, content.Labels) || !same(got.Reviewers, content.Reviewers) {
				f.Errorf("%s returns %+v", name, got)
			}
			if !strings.HasPrefix(got.URL, "http://127.0.0.1:") || !strings.HasSuffix(got.URL, fmt.Sprint("/", got.Number)) {
				f.Errorf("%s returns the URL %q", name, got.URL)
			}
		}
	})
}

func TestCreateReturnsTheExistingOne(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		first := f.create(f.content())
		content := f.content()
		content.Title = "Another title"
		second := f.create(content)
		if second.Number != first.Number || second.Title != first.Title || f.only().Title == content.Title {
			f.Errorf("Create returns %+v, the host has %+v", second, f.only())
		}
	})
}

func TestDeathAtEachCall(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		var number int64
		// Everything that one reconciliation does. It must be repeatable.
		reconcile := func() error {
			current, err := f.host.Open(f.Context(), branch, githosttest.Base)
			if err != nil {
				return err
			}
			if current == nil {
				if current, err = f.host.Create(f.Context(), branch, githosttest.Base, f.content()); err != nil {
					return err
				}
			}
			number = current.Number
			if _, err := f.host.Update(f.Context(), current, f.content()); err != nil {
				return err
			}
			return f.host.Comment(f.Context(), number, "updated:1", "Updated.")
		}
		for _, effect := range []githosttest.Effect{githosttest.Before, githosttest.After} {
			for call := 1; ; call++ {
				f.FailAt(call, effect, githosttest.Drop)
				failed := reconcile()
				f.FailAt(0, effect, nil)
				if err := reconcile(); err != nil {
					f.Fatal(err)
				}
				stored := f.only()
				if !same(stored.Labels, f.content().Labels) || len(stored.Reviewers) != len(f.content().Reviewers) || len(stored.Comments) != 1 {
					f.Errorf("after call %d (effect: %t), the host has %+v", call, effect, stored)
				}
				f.Delete(number)
				if failed == nil {
					break
				}
				wantError(f.T, failed, githost.Unreachable)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		f.Edit(created.Number, func(p *githosttest.PullRequest) { p.Labels = append(p.Labels, "of-a-person") })
		content := f.content()
		content.Title, content.Body, content.Draft = "Update more", "another body", false
		content.Labels, content.Reviewers = append(content.Labels, "more"), append(content.Reviewers, f.Reviewer("bob"))
		updated, err := f.host.Update(f.Context(), f.get(created.Number), content)
		if err != nil {
			f.Fatal(err)
		}
		stored, read := f.only(), f.get(created.Number)
		if stored.Body != content.Body || !same(stored.Labels, append(content.Labels, "of-a-person")) ||
			len(stored.Reviewers) != len(content.Reviewers) {
			f.Errorf("the host has %+v", stored)
		}
		for name, got := range map[string]*githost.PullRequest{"Update": updated, "Get": read} {
			if got.Title != content.Title || got.Body != content.Body || got.Draft || !same(got.Labels, stored.Labels) ||
				!same(got.Reviewers, content.Reviewers) {
				f.Errorf("%s returns %+v", name, got)
			}
		}
		content.Draft = true
		if _, err := f.host.Update(f.Context(), read, content); err != nil || !f.get(created.Number).Draft {
			f.Errorf("the pull request did not become a draft again: %v", err)
		}
	})
}

func TestUpdateWritesOnlyWhatDiffers(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		f.Review(created.Number, "alice")
		f.Edit(created.Number, func(p *githosttest.PullRequest) { p.Body = strings.ReplaceAll(p.Body, "\n", "\r\n") })
		before := writes(f.Calls())
		if _, err := f.host.Update(f.Context(), f.get(created.Number), f.content()); err != nil {
			f.Fatal(err)
		}
		if after := writes(f.Calls()); after != before {
			f.Errorf("an update without a difference wrote: %v", f.Calls())
		}
	})
}

func TestOpenAndNewest(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		ctx := f.Context()
		for name, other := range map[string]githosttest.PullRequest{
			"a fork":       {Head: branch, Base: githosttest.Base, FromFork: true},
			"another head": {Head: branch + "2", Base: githosttest.Base},
			"another base": {Head: branch, Base: "release"},
		} {
			f.Add(other)
			if found, err := f.host.Open(ctx, branch, githosttest.Base); found != nil || err != nil {
				f.Errorf("with %s, Open returns %+v, %v", name, found, err)
			}
			if found, err := f.host.Newest(ctx, branch, githosttest.Base, time.Time{}); found != nil || err != nil {
				f.Errorf("with %s, Newest returns %+v, %v", name, found, err)
			}
		}
		first := f.create(f.content())
		f.Merge(first.Number, "bob")
		newest, err := f.host.Newest(ctx, branch, githosttest.Base, first.Created)
		if err != nil || newest == nil || newest.Number != first.Number || newest.State != githost.Merged || newest.EndedBy != "bob" {
			f.Errorf("Newest returns %+v, %v", newest, err)
		}
		f.clock.Step(time.Hour)
		second := f.create(f.content())
		f.CloseBy(second.Number, "carol")
		f.clock.Step(time.Hour)
		if found, err := f.host.Open(ctx, branch, githosttest.Base); found != nil || err != nil {
			f.Errorf("Open returns %+v, %v", found, err)
		}
		// The host stores full seconds.
		since := second.Created.Add(300 * time.Millisecond)
		newest, err = f.host.Newest(ctx, branch, githosttest.Base, since)
		if err != nil || newest == nil || newest.Number != second.Number || newest.State != githost.Closed || newest.EndedBy != "carol" {
			f.Errorf("Newest returns %+v, %v", newest, err)
		}
		newest, err = f.host.Newest(ctx, branch, githosttest.Base, f.clock.Now())
		if newest != nil || err != nil {
			f.Errorf("Newest returns %+v, %v", newest, err)
		}
		third := f.create(f.content())
		found, err := f.host.Open(ctx, branch, githosttest.Base)
		if err != nil || found == nil || found.Number != third.Number || found.Body != f.content().Body || !same(found.Labels, third.Labels) {
			f.Errorf("Open returns %+v, %v", found, err)
		}
	})
}

func TestNamesOfBranches(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		for _, head := range []string{"a&state=all#b?c", "ä/🦀%2Fb", `a"b+c'd:e`, "stranger:" + branch, "a;b,c=d", "refs/heads/x"} {
			f.Push(head, "3333333333333333333333333333333333333333")
			if found, err := f.host.Open(f.Context(), head, githosttest.Base); found != nil || err != nil {
				f.Errorf("before %q exists, Open returns %+v, %v", head, found, err)
			}
			created, err := f.host.Create(f.Context(), head, githosttest.Base, f.content())
			if err != nil || created.Head != head {
				f.Errorf("Create with the head %q returns %+v, %v", head, created, err)
				continue
			}
			found, err := f.host.Newest(f.Context(), head, githosttest.Base, created.Created)
			if err != nil || found == nil || found.Number != created.Number || found.Head != head {
				f.Errorf("Newest with the head %q returns %+v, %v", head, found, err)
			}
		}
	})
}

func TestPages(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		for i := range 45 {
			f.clock.Step(time.Second)
			f.Add(githosttest.PullRequest{Head: branch, Base: githosttest.Base, FromFork: true, Title: fmt.Sprint(i)})
			f.CommentBy(created.Number, fmt.Sprint("comment ", i))
		}
		found, err := f.host.Open(f.Context(), branch, githosttest.Base)
		if err != nil || found == nil || found.Number != created.Number {
			f.Errorf("Open returns %+v, %v", found, err)
		}
		for range 2 {
			if err := f.host.Comment(f.Context(), created.Number, "a", "b"); err != nil {
				f.Fatal(err)
			}
		}
		if got := len(f.PullRequests()[0].Comments); got != 46 {
			f.Errorf("there are %d comments", got)
		}
	})
}

func TestLargePages(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		for range 20 {
			f.clock.Step(time.Second)
			f.Add(githosttest.PullRequest{Head: branch, Base: githosttest.Base, FromFork: true, Body: strings.Repeat("a", 60000)})
			f.CommentBy(created.Number, strings.Repeat("a", 60000))
		}
		found, err := f.host.Open(f.Context(), branch, githosttest.Base)
		if err != nil || found == nil || found.Number != created.Number {
			f.Errorf("Open returns %+v, %v", found, err)
		}
		for range 2 {
			if err := f.host.Comment(f.Context(), created.Number, "a", "b"); err != nil {
				f.Fatal(err)
			}
		}
		if got := len(f.PullRequests()[0].Comments); got != 21 {
			f.Errorf("there are %d comments", got)
		}
	})
}

func TestEnded(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		for _, state := range []githost.State{githost.Merged, githost.Closed} {
			created := f.create(f.content())
			last := f.get(created.Number).HeadSHA
			f.CommentBy(created.Number, "before")
			f.clock.Step(time.Hour)
			if state == githost.Merged {
				f.Merge(created.Number, "bob")
			} else {
				f.CloseBy(created.Number, "bob")
			}
			f.CommentBy(created.Number, "after")
			f.Push(branch, "3333333333333333333333333333333333333333")
			if got := f.get(created.Number); got.HeadSHA != last {
				f.Errorf("the commit of what is %s is %s after a push, want %s", state, got.HeadSHA, last)
			}
			f.DeleteBranch(branch)
			ended := f.get(created.Number)
			if ended.State != state || ended.EndedBy != "bob" || !ended.Ended.Equal(f.clock.Now()) || ended.Head != branch ||
				(state == githost.Merged) != (ended.MergeCommit != "") {
				f.Errorf("Get returns %+v", ended)
			}
			before := writes(f.Calls())
			if closed, err := f.host.Close(f.Context(), created.Number); err != nil || closed.State != state || writes(f.Calls()) != before {
				f.Errorf("Close returns %+v, %v", closed, err)
			}
			f.Push(branch, "2222222222222222222222222222222222222222")
		}
	})
}

func TestClosedByAnUnknownUser(t *testing.T) {
	for kind, call := range map[githosttest.Kind]int{githosttest.GitHub: 2, githosttest.Gitea: 3} {
		f := newFixture(t, kind)
		created := f.create(f.content())
		f.CloseBy(created.Number, "bob")
		for status, ok := range map[int]bool{http.StatusForbidden: true, http.StatusNotFound: true, http.StatusBadGateway: false} {
			f.FailAt(call, githosttest.Before, githosttest.Respond(status, "{}"))
			closed, err := f.host.Get(t.Context(), created.Number)
			if ok && (err != nil || closed.State != githost.Closed || closed.EndedBy != "") || !ok && (err == nil || closed != nil) {
				t.Errorf("%s: after a status %d, Get returns %+v, %v", kind, status, closed, err)
			}
		}
	}
}

func TestClose(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		closed, err := f.host.Close(f.Context(), created.Number)
		if err != nil || closed.State != githost.Closed || closed.EndedBy != githosttest.Bot || f.only().State != githosttest.Closed {
			f.Errorf("Close returns %+v, %v", closed, err)
		}
		f.Delete(created.Number)
		_, err = f.host.Close(f.Context(), created.Number)
		wantError(f.T, err, githost.NotFound, "close the pull request")
		_, err = f.host.Get(f.Context(), created.Number)
		wantError(f.T, err, githost.NotFound, "request")
	})
}

func TestCloseWhileAPersonMerges(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		reads := 1
		if f.Kind() == githosttest.AzureDevOps {
			reads = 2 // The labels are read by themselves.
		}
		f.FailAt(reads+1, githosttest.Before, func(w http.ResponseWriter, r *http.Request) {
			f.Merge(created.Number, "bob")
			githosttest.Respond(http.StatusConflict, `{"message":"merged"}`)(w, r)
		})
		closed, err := f.host.Close(f.Context(), created.Number)
		if err != nil || closed.State != githost.Merged || closed.EndedBy != "bob" {
			f.Errorf("Close returns %+v, %v", closed, err)
		}
	})
}

func TestComment(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		f.CommentBy(created.Number, "<!-- slipstream:declined:1 --> is only quoted here")
		for _, marker := range []string{"declined:1", "declined:1", "declined:12"} {
			if err := f.host.Comment(f.Context(), created.Number, marker, "The difference is *equal*.\n"); err != nil {
				f.Fatal(err)
			}
		}
		comments := f.only().Comments
		if len(comments) != 3 || comments[1] != "The difference is *equal*.\n\n<!-- slipstream:declined:1 -->" ||
			!strings.HasSuffix(comments[2], "<!-- slipstream:declined:12 -->") {
			f.Errorf("the comments are %q", comments)
		}
		for _, marker := range []string{"", "a b", "a-->b", "a--b", "-", strings.Repeat("a", 201)} {
			wantError(f.T, f.host.Comment(f.Context(), created.Number, marker, "text"), githost.Invalid, "marker")
		}
	})
}

func TestRefusedReviewersAndLabels(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		content := f.content()
		unknown := "mallory"
		if f.Kind() == githosttest.AzureDevOps {
			unknown = "00000000-0000-4000-8000-ffffffffffff"
		}
		content.Reviewers = []string{f.Reviewer("alice"), unknown, f.Reviewer("bob")}
		created, err := f.host.Create(f.Context(), branch, githosttest.Base, content)
		if created == nil || created.Number != f.only().Number || !same(f.only().Labels, content.Labels) ||
			!same(created.Reviewers, []string{f.Reviewer("alice"), f.Reviewer("bob")}) || !same(f.only().Reviewers, []string{"alice", "bob"}) {
			f.Errorf("Create returns %+v, the host has %+v", created, f.only())
		}
		wantError(f.T, err, githost.Invalid, "create the pull request: ")
		if !strings.Contains(err.Error(), "reviewer "+unknown+": ") {
			f.Errorf("the error does not name the reviewer: %v", err)
		}
		reads := 0
		for _, call := range f.Calls() {
			if strings.HasSuffix(call, "/reviews") {
				reads++
			}
		}
		if reads > 1 {
			f.Errorf("the reviews were read %d times", reads)
		}
	})
}

// TestExistingAmongMany has more open pull requests to the base than are read. That of a branch which was just pushed is found.
func TestExistingAmongMany(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		first := f.create(f.content())
		for i := range 1001 {
			f.Add(githosttest.PullRequest{Head: fmt.Sprintf("other-%d", i), Base: githosttest.Base, Title: "other"})
		}
		f.clock.Step(time.Minute)
		f.Push(branch, "2222222222222222222222222222222222222222")
		second, err := f.host.Create(f.Context(), branch, githosttest.Base, f.content())
		if err != nil || second.Number != first.Number {
			f.Errorf("Create returns %+v, %v, want the pull request %d", second, err, first.Number)
		}
	})
}
