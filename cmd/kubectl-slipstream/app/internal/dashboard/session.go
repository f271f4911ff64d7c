// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// codeLife is how long a link can be opened.
	codeLife = time.Minute
	// maxCodes and maxSessions are the numbers of links and tabs. The oldest ones end.
	maxCodes, maxSessions = 8, 64
)

// errNoSession is the refusal of a call without a session.
var errNoSession = &refusal{http.StatusUnauthorized, "The login of this page has ended", newLinkHint}

const newLinkHint = "Press Enter in the terminal of kubectl slipstream dashboard for a new link"

// digest is the hash of a secret. Hashes of equal length are compared in constant time, and say nothing about the secret.
type digest [sha256.Size]byte

func (d digest) isOf(secret string) bool {
	other := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(d[:], other[:]) == 1
}

// session is the login of a tab.
type session struct {
	digest
	// ended is closed when the session ends.
	ended chan struct{}
	// running has an item for each command that runs.
	running chan struct{}
}

// code is one that can be exchanged for a session once.
type code struct {
	digest
	until time.Time
}

// sessions are the logins of the page.
type sessions struct {
	now func() time.Time

	mu     sync.Mutex
	codes  []code
	opened []*session
}

// newCode returns a code for a link.
func (s *sessions) newCode() string {
	secret := base64.RawURLEncoding.EncodeToString(randomBytes())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = append(s.codes, code{sha256.Sum256([]byte(secret)), s.now().Add(codeLife)})
	s.codes = s.codes[max(0, len(s.codes)-maxCodes):]
	return secret
}

// open returns a session for a code. The code is used up, also if it is late.
func (s *sessions) open(secret string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.codes, func(c code) bool { return c.isOf(secret) })
	if at < 0 {
		return "", &refusal{http.StatusUnauthorized, "This link was used already, or is not one of this command", newLinkHint}
	}
	until := s.codes[at].until
	s.codes = slices.Delete(s.codes, at, at+1)
	if s.now().After(until) {
		return "", &refusal{http.StatusUnauthorized, "This link is older than a minute", newLinkHint}
	}
	token := hex.EncodeToString(randomBytes())
	s.opened = append(s.opened, &session{sha256.Sum256([]byte(token)), make(chan struct{}), make(chan struct{}, maxRuns)})
	if len(s.opened) > maxSessions {
		s.close(0)
	}
	return token, nil
}

// find returns a session.
func (s *sessions) find(token string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.opened {
		if of.isOf(token) {
			return of, nil
		}
	}
	return nil, errNoSession
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
	close(s.opened[at].ended)
	s.opened = slices.Delete(s.opened, at, at+1)
}

// randomBytes returns 256 bits. crypto/rand does not fail: it ends the process instead.
func randomBytes() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It returns no errors.
	return secret
}
