// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

const branch = "slipstream/prod/apps"

// fixture is a repository at a host of one kind, with a client.
type fixture struct {
	*testing.T
	*githosttest.Server
	host  githost.Host
	clock *testkit.Clock
}

// forEachKind runs a test with the API of each kind.
func forEachKind(t *testing.T, test func(*fixture)) {
	for _, kind := range githosttest.Kinds() {
		t.Run(string(kind), func(t *testing.T) { test(newFixture(t, kind)) })
	}
}

func newFixture(t *testing.T, kind githosttest.Kind) *fixture {
	clock := testkit.NewClock(t)
	server := githosttest.New(t, kind, githosttest.WithClock(clock))
	server.Push(branch, "1111111111111111111111111111111111111111")
	f := &fixture{T: t, Server: server, clock: clock}
	f.host = f.newHost(githost.Options{})
	return f
}

// newHost returns a host, with defaults for options that are not set.
func (f *fixture) newHost(o githost.Options) githost.Host {
	f.Helper()
	if o.RepoURL == "" {
		o.RepoURL = f.RepoURL
	}
	if o.Token == nil {
		o.Token = token(githost.Token{Value: githosttest.Token})
	}
	if o.Client == nil {
		o.Client = f.Client()
	}
	o.Kind, o.Clock = githost.Kind(f.Kind()), f.clock
	host, err := githost.New(o)
	if err != nil {
		f.Fatal(err)
	}
	return host
}

func token(value githost.Token) func(context.Context, string) (githost.Token, error) {
	return func(context.Context, string) (githost.Token, error) { return value, nil }
}

// content is what the tests propose.
func (f *fixture) content() githost.Content {
	reviewers := []string{f.Reviewer("alice")}
	if f.Team != "" {
		reviewers = append(reviewers, f.Team)
	}
	return githost.Content{
		Title: "Update apps of prod", Body: "| object | change |\n|---|---|\n| a | created |\n", Labels: []string{"gitops", "Prod apps"},
		Reviewers: reviewers, Draft: true,
	}
}

// create opens a pull request.
func (f *fixture) create(content githost.Content) *githost.PullRequest {
	f.Helper()
	created, err := f.host.Create(f.Context(), branch, githosttest.Base, content)
	if err != nil {
		f.Fatal(err)
	}
	return created
}

// get reads a pull request.
func (f *fixture) get(number int64) *githost.PullRequest {
	f.Helper()
	found, err := f.host.Get(f.Context(), number)
	if err != nil {
		f.Fatal(err)
	}
	return found
}

// only returns the only pull request that the host has.
func (f *fixture) only() githosttest.PullRequest {
	f.Helper()
	all := f.PullRequests()
	if len(all) != 1 {
		f.Fatalf("the host has %d pull requests: %+v", len(all), all)
	}
	return all[0]
}

// writes returns how many of the calls change something.
func writes(calls []string) int {
	count := 0
	for _, call := range calls {
		if !strings.HasPrefix(call, http.MethodGet) {
			count++
		}
	}
	return count
}

// wantError fails the test unless an error has a kind and contains texts, and returns how long to wait.
func wantError(t *testing.T, err error, kind githost.ErrorKind, texts ...string) time.Duration {
	t.Helper()
	failed, ok := errors.AsType[*githost.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want one of the kind %s", err, kind)
	}
	if failed.Kind != kind {
		t.Errorf("the error %q is %s, want %s", failed, failed.Kind, kind)
	}
	for _, text := range texts {
		if !strings.Contains(failed.Error(), text) {
			t.Errorf("the error is %q, want %q in it", failed, text)
		}
	}
	if strings.Contains(failed.Error(), githosttest.Token) || len(failed.Message) > 600 {
		t.Errorf("the error contains the token or is too long: %q", failed)
	}
	return failed.RetryAfter
}

// same reports whether two lists have the same elements in any order.
func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
