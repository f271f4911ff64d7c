// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault responds to a request in place of the host.
type Fault func(http.ResponseWriter, *http.Request)

// Effect says whether a request that gets a fault has its effect.
type Effect bool

// The effects of requests that get a fault.
const (
	Before Effect = false
	After  Effect = true
)

// Drop closes the connection without a response.
func Drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Respond returns a fault that responds with a status, a body and headers, given as pairs of name and value.
func Respond(status int, body string, header ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		for at := 0; at+1 < len(header); at += 2 {
			w.Header().Set(header[at], header[at+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // The client may have disconnected.
	}
}

// faults are the failures that a test has planned.
type faults struct {
	// always gets all requests.
	always Fault
	// release ends the requests that hang; nil if there never were any.
	release func()
	// at counts the requests until the one that gets the fault next, 0 if there is none.
	at     int
	next   Fault
	effect Effect
}

// FailAt makes the nth request from now, counted from 1, get a fault before or after its effect. It replaces the one that was planned.
func (s *Server) FailAt(n int, effect Effect, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.at, s.faults.effect, s.faults.next = n, effect, fault
}

// Always makes all requests get a fault and have no effect, until it is called with nil.
func (s *Server) Always(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.always = fault
	if s.faults.release != nil {
		s.faults.release()
	}
}

// Down makes the host close all connections.
func (s *Server) Down() { s.Always(Drop) }

// Hang makes the host accept all requests and not respond to them, until Up is called. The channel is closed when one hangs.
func (s *Server) Hang() <-chan struct{} {
	up, hangs := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(hangs) })
	s.Always(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then the server notices that the client disconnects.
		first()
		select {
		case <-up:
		case <-r.Context().Done():
		}
		Drop(w, r)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.release = sync.OnceFunc(func() { close(up) })
	return hangs
}

// Up ends what Always, Down, Hang and RateLimit began.
func (s *Server) Up() { s.Always(nil) }

// RateLimit makes the host refuse all requests, as it does when too many were made. The limit ends after a time.
func (s *Server) RateLimit(wait time.Duration) {
	seconds, reset := strconv.Itoa(int(wait/time.Second)), strconv.FormatInt(s.clock.Now().Add(wait).Unix(), 10)
	switch s.kind {
	case GitHub:
		s.Always(Respond(http.StatusForbidden, `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com"}`,
			"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset))
	case GitLab:
		s.Always(Respond(http.StatusTooManyRequests, "Retry later\n", "Content-Type", "text/plain", "RateLimit-Limit", "60",
			"RateLimit-Remaining", "0", "RateLimit-Reset", reset, "Retry-After", seconds))
	case AzureDevOps:
		s.Always(Respond(http.StatusTooManyRequests, azureErrorBody("TF400733: The request has been canceled: Request was blocked due to "+
			"exceeding usage of resource 'Concurrency' in namespace 'User'.", "RequestBlockedException"),
			"Retry-After", seconds, "X-RateLimit-Resource", "Core", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset))
	default: // Gitea has no limits of its own, but proxies before it do.
		s.Always(Respond(http.StatusTooManyRequests, "slow down", "Content-Type", "text/plain", "Retry-After",
			s.clock.Now().Add(wait).UTC().Format(http.TimeFormat)))
	}
}

// withFaults counts the requests, and responds to those that get a fault.
func (s *Server) withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.git != nil && isGit(r.URL.Path) {
			s.git.ServeHTTP(w, r)
			return
		}
		fault, effect := s.planned(r)
		if fault == nil {
			next.ServeHTTP(w, r)
			return
		}
		if effect == After {
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		fault(w, r)
	})
}

// isGit reports whether a request is one of Git's protocol. It is not counted, and gets no fault.
func isGit(path string) bool {
	return strings.HasSuffix(path, "/info/refs") || strings.HasSuffix(path, "/git-upload-pack") || strings.HasSuffix(path, "/git-receive-pack")
}

func (s *Server) planned(r *http.Request) (Fault, Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	if s.faults.always != nil {
		return s.faults.always, Before
	}
	if s.faults.at == 0 {
		return nil, Before
	}
	s.faults.at--
	if s.faults.at > 0 {
		return nil, Before
	}
	return s.faults.next, s.faults.effect
}

// respond writes a value as JSON.
func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // The client may have disconnected.
}

// decode reads a request. A field that the schema does not have fails the test.
func (s *Server) decode(r *http.Request, into any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return false
	}
	if media := r.Header.Get("Content-Type"); media != "application/json" {
		s.t.Errorf("%s %s: the content type is %q", r.Method, r.URL.Path, media)
	}
	return true
}

// checkQuery fails the test if a request has a parameter that the schema does not have.
func (s *Server) checkQuery(r *http.Request, allowed ...string) {
	for key := range r.URL.Query() {
		known := false
		for _, name := range allowed {
			known = known || name == key
		}
		if !known {
			s.t.Errorf("%s %s: the API has no parameter %s", r.Method, r.URL.Path, key)
		}
	}
}

// pageOf returns the items of the page that a request asks for, and links to the next page as GitHub, GitLab and Gitea do.
func pageOf[T any](w http.ResponseWriter, r *http.Request, items []T, sizeName string, usual, largest int) []T {
	query := r.URL.Query()
	number, _ := strconv.Atoi(query.Get("page")) // A missing page is the first one.
	size, _ := strconv.Atoi(query.Get(sizeName)) // A missing size is the usual one.
	if size < 1 {
		size = usual
	}
	size, number = min(size, largest), max(number, 1)
	start, end := min((number-1)*size, len(items)), min(number*size, len(items))
	if end < len(items) {
		query.Set("page", strconv.Itoa(number+1))
		w.Header().Set("Link", fmt.Sprintf("<http://%s%s?%s>; rel=\"next\"", r.Host, r.URL.EscapedPath(), query.Encode()))
	} else if number > 1 {
		w.Header().Set("Link", fmt.Sprintf("<http://%s%s?page=1>; rel=\"first\"", r.Host, r.URL.EscapedPath()))
	}
	return append([]T{}, items[start:end]...)
}

// numberOf returns the pull request in the path, nil if there is none.
func (s *Server) numberOf(r *http.Request) *pull {
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil {
		return nil
	}
	return s.find(number)
}
