// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// TestPushReusesAdvertisement counts the advertisements that pushes read: none for a push that starts at the tip of the last
// one, and always one after a failure.
func TestPushReusesAdvertisement(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.first("theirs", "1\n")
	var asked atomic.Int64
	branch := load(t, newRemote(t, r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodGet && strings.Contains(request.URL.RawQuery, "git-receive-pack") {
				asked.Add(1)
			}
			next.ServeHTTP(response, request)
		})
	})), gitrepo.Options{})

	steps := []struct {
		name   string
		before func()
		want   string // pushed if it is empty
		asks   int64
	}{
		{name: "the first push", asks: 1},
		{name: "after a push"},
		{name: "after two pushes"},
		{name: "somebody else has pushed", want: "moved", before: func() {
			w.git("pull", "--quiet", "--rebase", "origin", "main")
			w.write("theirs", "2\n")
			w.push("second")
		}},
		{name: "after a race that was lost", asks: 1},
		{name: "after the race was won"},
		{name: "a hook refuses", want: "refused", before: func() { r.hook("pre-receive", "exit 1\n") }},
		{name: "after a refusal", asks: 1, before: func() { r.hook("pre-receive", "exit 0\n") }},
		{name: "history is rewritten and what was pushed is gone", want: "moved", before: func() {
			r.git("update-ref", "refs/heads/main", strings.TrimSpace(r.git("rev-list", "--max-parents=0", "main")))
			r.git("reflog", "expire", "--expire=now", "--all")
			r.git("gc", "--quiet", "--prune=now")
		}},
		{name: "after that", asks: 1},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before()
			}
			before := asked.Load()
			stage(t, branch, set("ours", step.name))
			_, err := branch.Push(t.Context())
			if got, want := outcome(err), cmp.Or(step.want, "pushed"); got != want {
				t.Fatalf("%s (error: %v), want %s", got, err, want)
			}
			if got := asked.Load() - before; got != step.asks {
				t.Errorf("asked %d times, want %d", got, step.asks)
			}
			if err := branch.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if step.want == "" && r.git("show", "main:ours") != step.name {
				t.Errorf("the branch has %q", r.git("show", "main:ours"))
			}
		})
	}
	r.fsck()
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "pushed"
	case errors.Is(err, gitrepo.ErrMoved):
		return "moved"
	default:
		return "refused"
	}
}
