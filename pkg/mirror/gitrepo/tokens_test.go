// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// numbered issues the tokens token-1, token-2 and so on.
type numbered struct {
	mu     sync.Mutex
	number int
	// last is the number of the last token, 0 for any number.
	last int
	err  error
}

func (n *numbered) Token(_ context.Context, refused string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return "", n.err
	}
	if token := n.token(); refused != token && n.number > 0 || n.number == n.last && n.last > 0 {
		return token, nil
	}
	n.number++
	return n.token(), nil
}

func (n *numbered) token() string { return fmt.Sprintf("token-%d", n.number) }

// tokenServer accepts each of the tokens uses times, in their order.
type tokenServer struct {
	git    http.Handler
	bearer bool
	uses   int

	mu      sync.Mutex
	used    map[string]int
	refused int
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, token, basic := r.BasicAuth()
	if s.bearer {
		token, basic = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	s.mu.Lock()
	s.used[token]++
	ok := basic && (s.bearer || user == "x-access-token") && s.used[token] <= s.uses
	if !ok {
		s.refused++
	}
	s.mu.Unlock()
	if !ok {
		http.Error(w, "this is not valid: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	s.git.ServeHTTP(w, r)
}

// TestTokensThatEnd pushes while the server ends tokens without announcing it: at the advertisement and within a push.
func TestTokensThatEnd(t *testing.T) {
	for name, user := range map[string]string{"as a password": "x-access-token", "as a bearer token": ""} {
		for uses := 1; uses <= 3; uses++ {
			t.Run(fmt.Sprint(name, ", ", uses), func(t *testing.T) {
				r := newRepository(t)
				front := &tokenServer{git: r.backend(), bearer: user == "", uses: uses, used: map[string]int{}}
				remote := newRemote(t, r.serve(func(http.Handler) http.Handler { return front }))
				remote.Credentials = gitrepo.Credentials{Username: user, Tokens: &numbered{}}
				if err := remote.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				branch := load(t, remote, gitrepo.Options{})
				for i := range 5 {
					stage(t, branch, set("a", fmt.Sprint(i)), set("large", noise(1<<20)))
					push(t, branch)
				}
				if front.refused == 0 {
					t.Error("no token ended")
				}
			})
		}
	}
}

// TestTokensThatAreRefused has a server that accepts none.
func TestTokensThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		tokens   *numbered
		requests int
		want     gitrepo.Kind
		says     string
	}{
		"a new one":    {&numbered{}, 2, gitrepo.Unauthorized, "this is not valid: Basic eC1hY2Nlc3MtdG9rZW46[REDACTED]"},
		"no other":     {&numbered{number: 1, last: 1}, 1, gitrepo.Unauthorized, "this is not valid: Basic eC1hY2Nlc3MtdG9rZW46[REDACTED]"},
		"none":         {&numbered{err: &gitrepo.Error{Kind: gitrepo.NotFound, Op: "get a token", Message: "no"}}, 0, gitrepo.NotFound, "cannot get a token: no"},
		"other errors": {&numbered{err: errors.New("no")}, 0, gitrepo.Unreachable, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			front := &tokenServer{used: map[string]int{}}
			server := httptest.NewServer(front)
			defer server.Close()
			remote := newRemote(t, server.URL+"/x")
			remote.Credentials = gitrepo.Credentials{Username: "x-access-token", Tokens: test.tokens}
			checkLogin(t, remote, test.want, test.says)
			if front.refused != test.requests {
				t.Errorf("%d requests, want %d", front.refused, test.requests)
			}
		})
	}
}

func TestEqualCredentials(t *testing.T) {
	tokens := &numbered{}
	base := gitrepo.Credentials{Username: "a", Tokens: tokens}
	for name, test := range map[string]struct {
		other gitrepo.Credentials
		want  bool
	}{
		"same":         {gitrepo.Credentials{Username: "a", Tokens: tokens}, true},
		"other tokens": {gitrepo.Credentials{Username: "a", Tokens: &numbered{}}, false},
		"no tokens":    {gitrepo.Credentials{Username: "a"}, false},
		"other name":   {gitrepo.Credentials{Username: "b", Tokens: tokens}, false},
	} {
		if got := base.Equal(test.other); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
