// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"cmp"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// TestPushReusesAdvertisement counts the advertisements that pushes request: none for a push on the tip of the previous
// push, one after a failure.
func TestPushReusesAdvertisement(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.first("theirs", "1\n")
	var requests atomic.Int64
	branch := load(t, newRemote(t, r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodGet && strings.Contains(request.URL.RawQuery, "git-receive-pack") {
				requests.Add(1)
			}
			next.ServeHTTP(response, request)
		})
	})), gitrepo.Options{})

	steps := []struct {
		name     string
		before   func()
		want     string // defaults to pushed
		requests int64
	}{
		{name: "the first push", requests: 1},
		{name: "after a push"},
		{name: "after two pushes"},
		{name: "another writer has pushed", want: "moved", before: func() {
			w.git("pull", "--quiet", "--rebase", "origin", "main")
			w.write("theirs", "2\n")
			w.push("second")
		}},
		{name: "after a conflict", requests: 1},
		{name: "after a push that followed a conflict"},
		{name: "a hook rejects", want: "rejected", before: func() { r.hook("pre-receive", "exit 1\n") }},
		{name: "after a rejection", requests: 1, before: func() { r.hook("pre-receive", "exit 0\n") }},
		{name: "rewritten history without the pushed commits", want: "moved", before: func() {
			r.git("update-ref", "refs/heads/main", strings.TrimSpace(r.git("rev-list", "--max-parents=0", "main")))
			r.git("reflog", "expire", "--expire=now", "--all")
			r.git("gc", "--quiet", "--prune=now")
		}},
		{name: "after rewritten history", requests: 1},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before()
			}
			before := requests.Load()
			stage(t, branch, set("ours", step.name))
			_, err := branch.Push(t.Context())
			if got, want := outcome(err), cmp.Or(step.want, "pushed"); got != want {
				t.Fatalf("%s (error: %v), want %s", got, err, want)
			}
			if got := requests.Load() - before; got != step.requests {
				t.Errorf("%d advertisements, want %d", got, step.requests)
			}
			if err := branch.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if step.want == "" && r.git("show", "main:ours") != step.name {
				t.Errorf("content = %q", r.git("show", "main:ours"))
			}
		})
	}
	r.fsck()
}

// TestRenamedRepository renames a repository between two pushes. The server redirects requests to the old name, also those of a push, which
// clients cannot follow.
func TestRenamedRepository(t *testing.T) {
	r := newRepository(t)
	base := "/" + filepath.Base(r.path)
	var renamed atomic.Bool
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			rest, isNew := strings.CutPrefix(request.URL.Path, "/renamed")
			switch {
			case isNew:
				request.URL.Path = base + rest
				next.ServeHTTP(response, request)
			case renamed.Load():
				http.Redirect(response, request, "/renamed"+strings.TrimPrefix(request.URL.Path, base)+"?"+request.URL.RawQuery,
					http.StatusTemporaryRedirect)
			default:
				next.ServeHTTP(response, request)
			}
		})
	})
	remote := newRemote(t, url)
	branch := load(t, remote, gitrepo.Options{})
	for i := range 4 {
		if i == 2 {
			if got := remote.Redirect(); got != "" {
				t.Errorf("redirected to %q before the repository was renamed", got)
			}
			renamed.Store(true)
		}
		stage(t, branch, set("a", strconv.Itoa(i)))
		push(t, branch)
	}
	if got, want := remote.Redirect(), strings.TrimSuffix(url, base)+"/renamed"; got != want {
		t.Errorf("redirected to %q, want %q", got, want)
	}
	if got := r.git("show", "main:a"); got != "3" {
		t.Errorf("content = %q", got)
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "pushed"
	case errors.Is(err, gitrepo.ErrMoved):
		return "moved"
	default:
		return "rejected"
	}
}
