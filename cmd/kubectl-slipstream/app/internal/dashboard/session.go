// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sessionIdle is the time without a request after which a session ends.
const sessionIdle = 8 * time.Hour

// digest is the hash of a secret. Hashes of equal length are compared in constant time, and say nothing about the secret.
type digest [sha256.Size]byte

func (d digest) isOf(secret string) bool {
	other := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

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
// longest time, of those without a stream: tabs that are closed do not say so.
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
	var own []*session
	for _, other := range s.opened {
		if other.identity.is(of.identity) {
			own = append(own, other)
		}
	}
	if len(own) >= s.mostOfUser && !s.endOne(own) {
		return "", &refusal{http.StatusTooManyRequests, fmt.Sprintf("You have %d tabs with this page already", s.mostOfUser), "Close one of them"}
	}
	if len(s.opened) >= s.most && !s.endOne(s.opened) {
		return "", &refusal{http.StatusTooManyRequests, fmt.Sprintf("%d tabs show this page already", s.most), "Try again later"}
	}
	token := hex.EncodeToString(randomBytes())
	opened := &session{
		digest: sha256.Sum256([]byte(token)), workspace: of.workspace, identity: of.identity, ended: make(chan struct{}), running: make(chan struct{}, maxRuns),
	}
	if of.identity != nil {
		of.workspace.cluster.loggedOut = func() { s.end(opened) }
	}
	opened.idle = time.AfterFunc(sessionIdle, func() { s.end(opened) })
	s.opened = append(s.opened, opened)
	return token, nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.opened, func(of *session) bool { return of.isOf(token) })
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
	s.opened = slices.Delete(s.opened, at, at+1)
}

// randomBytes returns 256 bits. crypto/rand does not fail: it ends the process instead.
func randomBytes() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It returns no errors.
	return secret
}
