// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxToken is more than the length of the secret of a session.
const maxToken = 100

// sessionIdle is the time without a request after which a session ends.
const sessionIdle = 8 * time.Hour

// digest is the hash of a secret. Hashes of equal length are compared in constant time, and say nothing about the secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func (d digest) is(other digest) bool { return subtle.ConstantTimeCompare(d[:], other[:]) == 1 }

// session is the login of a tab.
type session struct {
	digest
	*workspace
	// identity is the user, nil if all sessions have the same one.
	identity *identity
	// ended is closed when the session ends.
	ended chan struct{}
	// running has an item for each command that runs.
	running chan struct{}
	// streams is the number of streams that are open.
	streams atomic.Int32
	// idle ends the session unless there is a request.
	idle *time.Timer
}

// sessions are the logins of the page: at most a number, and a number of one user. For another one, that ends which was not used for the
// longest time, of those without a stream: tabs that are closed do not say so. A user with many tabs makes room for one with few.
type sessions struct {
	most, mostOfUser int

	mu sync.Mutex
	// opened are the ones that were used last at the end.
	opened []*session
}

// open returns the secret of a new session.
func (s *sessions) open(of *login) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(of.identity.user()); err != nil {
		return "", err
	}
	token := hex.EncodeToString(randomBytes())
	opened := &session{
		digest: digestOf(token), workspace: of.workspace, identity: of.identity, ended: make(chan struct{}), running: make(chan struct{}, maxRuns),
	}
	if of.identity != nil {
		of.workspace.cluster.loggedOut = func() { s.end(opened) }
	}
	opened.idle = time.AfterFunc(sessionIdle, func() { s.end(opened) })
	s.opened = append(s.opened, opened)
	return token, nil
}

// makeRoom ends a session if a user cannot open another one otherwise: one of that user's, or one of the user who has most. It is called
// with the lock.
func (s *sessions) makeRoom(user string) error {
	byUser := map[string][]*session{}
	for _, of := range s.opened {
		user := of.identity.user()
		byUser[user] = append(byUser[user], of)
	}
	if len(byUser[user]) >= s.mostOfUser && !s.endOne(byUser[user]) {
		return &refusal{http.StatusTooManyRequests, fmt.Sprintf("You have %d tabs with this page already", s.mostOfUser), "Close one of them"}
	}
	if len(s.opened) < s.most {
		return nil
	}
	byNumber := slices.SortedFunc(maps.Values(byUser), func(a, b []*session) int { return cmp.Compare(len(b), len(a)) })
	if slices.ContainsFunc(byNumber, s.endOne) {
		return nil
	}
	if largest := byNumber[0]; len(largest) > len(byUser[user])+1 {
		s.close(slices.Index(s.opened, largest[0]))
		return nil
	}
	return &refusal{http.StatusTooManyRequests, fmt.Sprintf("%d tabs show this page already", s.most), "Try again later"}
}

// endOne ends the first of some sessions that has no stream, and reports whether there is one. It is called with the lock.
func (s *sessions) endOne(of []*session) bool {
	at := slices.IndexFunc(of, func(other *session) bool { return other.streams.Load() == 0 })
	if at >= 0 {
		s.close(slices.Index(s.opened, of[at]))
	}
	return at >= 0
}

// find returns a session, which is used now. It returns nil if there is none.
func (s *sessions) find(token string) *session {
	wanted := digestOf(token[:min(len(token), maxToken)])
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.opened, func(of *session) bool { return of.is(wanted) })
	if at < 0 {
		return nil
	}
	found := s.opened[at]
	found.idle.Reset(sessionIdle)
	s.opened = append(slices.Delete(s.opened, at, at+1), found)
	return found
}

// end ends a session.
func (s *sessions) end(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.opened, of); at >= 0 {
		s.close(at)
	}
}

// close ends a session. It is called with the lock.
func (s *sessions) close(at int) {
	s.opened[at].idle.Stop()
	close(s.opened[at].ended)
	if s.opened[at].identity != nil {
		s.opened[at].workspace.close()
	}
	s.opened = slices.Delete(s.opened, at, at+1)
}

// randomBytes returns 256 bits. crypto/rand does not fail: it ends the process instead.
func randomBytes() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It returns no errors.
	return secret
}
