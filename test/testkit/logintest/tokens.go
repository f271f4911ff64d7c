// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logintest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// tokens are those that a host has issued.
type tokens struct {
	prefix string
	now    func() time.Time

	mu     sync.Mutex
	issued map[string]*token
	count  int
	// uses is how often a token is accepted before the host ends it, 0 for any number.
	uses int
	// refused counts the requests with a token that is no longer valid.
	refused int
}

// token is a token that is valid until it ends.
type token struct {
	repository  string
	permissions map[string]string
	end         time.Time
	uses        int
}

func newTokens(prefix string, now func() time.Time) *tokens {
	return &tokens{prefix: prefix, now: now, issued: map[string]*token{}}
}

// issue returns a new token for a repository, or for all if it is empty, with permissions.
func (t *tokens) issue(repository string, lifetime time.Duration, permissions map[string]string) (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	value, end := fmt.Sprintf("%s%036d", t.prefix, t.count), t.now().Add(lifetime)
	t.issued[value] = &token{repository: repository, permissions: permissions, end: end}
	return value, end
}

// Issued returns how many tokens were issued.
func (t *tokens) Issued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// Refused returns how many requests had a token that was not valid.
func (t *tokens) Refused() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}

// EndAfter ends each token after it has been accepted a number of times, without announcing it; 0 stops that.
func (t *tokens) EndAfter(uses int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses = uses
}

// Revoke ends all tokens.
func (t *tokens) Revoke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.issued)
}

// accepts reports whether a token is valid for the repository of a path.
func (t *tokens) accepts(value, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.issued[value]
	if !ok || !t.now().Before(found.end) || t.uses > 0 && found.uses >= t.uses {
		t.refused++
		return false
	}
	found.uses++
	return found.repository == "" || strings.HasPrefix(path, "/"+found.repository+"/") || strings.HasPrefix(path, "/"+found.repository+".git/")
}

// permissionsOf returns the permissions of a token.
func (t *tokens) permissionsOf(value string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.issued[value]; ok {
		return found.permissions
	}
	return nil
}

// refuse refuses a Git request. It quotes the credentials, as servers should not.
func refuse(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "invalid credentials: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
}
