// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/mirror/internal/boundedcache"
)

const (
	// renewBefore is how long before its end a token is renewed. One that is valid for less than twice as long is renewed at half of its
	// time.
	renewBefore = 5 * time.Minute
	// renewRetry is when the renewal of a token that is still valid is tried again.
	renewRetry = 30 * time.Second
	// exchangeTimeout bounds one exchange, which takes at most three requests.
	exchangeTimeout = 20 * time.Second
	// maxLifetime bounds how long a token is kept, whatever the host says.
	maxLifetime = 24 * time.Hour
	// maxSources bounds the number of cached tokens. A source that is evicted still serves those that have it.
	maxSources = 1000
	// refusalInterval and refusalBurst bound how often tokens are replaced because the host refuses them, which it also does if the
	// identity has no access.
	refusalInterval = 10 * time.Second
	refusalBurst    = 6
)

// Issuer obtains tokens of one identity.
type Issuer interface {
	// identity has everything that the tokens depend on, secrets included.
	identity() string
	// issue requests a token.
	issue(ctx context.Context, via route) (issued, error)
}

// issued is a new token.
type issued struct {
	value    string
	lifetime time.Duration
}

// Tokens caches tokens. It is safe for concurrent use.
type Tokens struct {
	network *proxy.Network
	now     func() time.Time

	mu      sync.Mutex
	sources *boundedcache.Cache[[sha256.Size]byte, *Source]
}

// New returns an empty cache. network connects to the servers that issue tokens, and now is the clock by which tokens end.
func New(network *proxy.Network, now func() time.Time) *Tokens {
	return &Tokens{
		network: network, now: now,
		sources: boundedcache.New[[sha256.Size]byte](maxSources, func(*Source) int64 { return 1 }),
	}
}

// Source returns the source of the tokens of an issuer, which is reached through a proxy unless that is nil. It is the same for issuers
// that agree in everything, and another after any part has changed.
func (t *Tokens) Source(issuer Issuer, through *proxy.Proxy) *Source {
	identity := issuer.identity()
	if through != nil {
		username, password := through.Credentials()
		identity = fmt.Sprintf("%s through %q %q %q", identity, through.String(), username, password)
	}
	key := sha256.Sum256([]byte(identity))
	t.mu.Lock()
	defer t.mu.Unlock()
	if source, ok := t.sources.Get(key); ok {
		return source
	}
	source := &Source{
		issuer: issuer, route: route{t.network, through, t.now}, now: t.now, exchange: make(chan struct{}, 1),
		refusals: rate.NewLimiter(rate.Every(refusalInterval), refusalBurst),
	}
	t.sources.Put(key, source)
	return source
}

// Source has the current token of an issuer. It is safe for concurrent use.
type Source struct {
	issuer Issuer
	route  route
	now    func() time.Time
	// exchange is held by the caller that requests a token.
	exchange chan struct{}
	// refusals limits the renewals of refused tokens.
	refusals *rate.Limiter

	mu    sync.Mutex
	value string
	// renew is when the token is renewed, end is when it is no longer valid.
	renew, end time.Time
}

// Token returns a valid token. refused is one that the host has refused, or empty: it is replaced, unless many have been refused.
//
// A token that is due is renewed by one caller, while the others continue to use it. If that fails, it is used until its end.
func (s *Source) Token(ctx context.Context, refused string) (string, error) {
	value, state := s.current(refused)
	switch state {
	case fresh:
		return value, nil
	case due:
		select {
		case s.exchange <- struct{}{}:
		default:
			return value, nil
		}
	case ended:
		select {
		case s.exchange <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	defer func() { <-s.exchange }()
	if value, again := s.current(refused); again == fresh {
		return value, nil // another caller has renewed it
	}
	return s.request(ctx, refused)
}

// state is what a token needs.
type state int

const (
	fresh state = iota
	// due means that the token should be renewed but is valid.
	due
	ended
)

// current returns the token and its state.
func (s *Source) current(refused string) (string, state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := s.now(); {
	case s.value == "" || !now.Before(s.end) || s.value == refused:
		return s.value, ended
	case !now.Before(s.renew):
		return s.value, due
	}
	return s.value, fresh
}

// request requests a token. The caller holds exchange.
func (s *Source) request(ctx context.Context, refused string) (string, error) {
	value, before := s.current("")
	if before != ended && value == refused && !s.refusals.AllowN(s.now(), 1) {
		return value, nil
	}
	limited, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	got, err := s.issuer.issue(limited, s.route)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && before == due && value != refused:
		s.renew = now.Add(renewRetry)
		return value, nil
	case err != nil:
		return "", err
	}
	lifetime := min(got.lifetime, maxLifetime)
	s.value, s.end, s.renew = got.value, now.Add(lifetime), now.Add(lifetime-min(renewBefore, lifetime/2))
	return s.value, nil
}
