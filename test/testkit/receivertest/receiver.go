// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Receiver is a receiver of calls in one format.
type Receiver struct {
	// URL is the url of a sink.
	URL string

	format format
	prefix string
	server *httptest.Server
	closed chan struct{}

	mutex         sync.Mutex
	authorization func(*http.Request) bool
	next, always  []Answer
	calls         []Call
	faults        []string
	index         index
	changed       chan struct{}
}

// Call is a received request.
type Call struct {
	At           time.Time
	Method, Path string
	Header       http.Header
	Body         []byte
	// Status is the status of the response. It is 0 before the response, and if the connection was closed instead.
	Status int
}

// Option changes a receiver.
type Option func(*Receiver)

// TLS makes the receiver use HTTPS with a certificate of an unknown authority.
func TLS() Option { return func(r *Receiver) { r.server.StartTLS() } }

// Below sets a path prefix.
func Below(path string) Option { return func(r *Receiver) { r.prefix = path } }

// New starts a receiver on the loopback interface that runs until the end of the test. Faults that the test has not read with Faults fail
// it then.
func New(t testing.TB, name v1alpha1.PipelineFormat, options ...Option) *Receiver {
	t.Helper()
	format, found := formats[name]
	if !found {
		t.Fatalf("unknown format %q", name)
	}
	r := &Receiver{format: format, closed: make(chan struct{}), index: index{}, changed: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients report that they do not trust the certificate
	for _, option := range options {
		option(r)
	}
	if r.server.URL == "" {
		r.server.Start()
	}
	r.URL = r.server.URL + r.prefix
	t.Cleanup(func() {
		close(r.closed)
		r.server.CloseClientConnections()
		r.server.Close()
		for _, fault := range r.Faults() {
			t.Errorf("invalid call to the receiver of %s at %s: %s", name, r.URL, fault)
		}
	})
	return r
}

// CABundle returns the authority of the certificate as PEM; nil without TLS.
func (r *Receiver) CABundle() []byte {
	certificate := r.server.Certificate()
	if certificate == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// Require makes the receiver require a bearer token. It rejects calls without the token with 401, and records a fault.
func (r *Receiver) Require(token string) {
	r.require(func(request *http.Request) bool { return request.Header.Get("Authorization") == "Bearer "+token })
}

// RequireBasic is Require with a username and a password.
func (r *Receiver) RequireBasic(username, password string) {
	r.require(func(request *http.Request) bool {
		name, secret, given := request.BasicAuth()
		return given && name == username && secret == password
	})
}

func (r *Receiver) require(authorization func(*http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.authorization = authorization
}

// Next sets the answers to the next calls, in order.
func (r *Receiver) Next(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next = append(r.next, answers...)
}

// Always sets the answers to calls without an answer of Next. They are used in rotation. Without answers, the receiver responds like the
// consumer.
func (r *Receiver) Always(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.always = slices.Clone(answers)
}

// Calls returns the received calls in order.
func (r *Receiver) Calls() []Call {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.calls)
}

// Faults returns the faults of calls since it was last called.
func (r *Receiver) Faults() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	faults := r.faults
	r.faults = nil
	return faults
}

// Known returns the names of the consumer's objects after the accepted calls, sorted: instances as namespace/apiVersion/kind/name, with the
// namespace _cluster for cluster-scoped ones; definitions by their names, or as Kind.group if calls have no name.
func (r *Receiver) Known() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.index.names()
}

// Object returns the last received state of an instance or definition.
func (r *Receiver) Object(name string) (Object, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.index.named(name)
}

// Await waits until a condition is true. It is checked whenever a call is received or responded to.
func (r *Receiver) Await(ctx context.Context, condition func() bool) error {
	for {
		r.mutex.Lock()
		changed := r.changed
		r.mutex.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("condition not met after %d calls: %w", len(r.Calls()), ctx.Err())
		}
	}
}

// serve records, checks and answers a call.
func (r *Receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		// The client has disconnected during the request.
		panic(http.ErrAbortHandler)
	}
	at, answer := r.record(request, body)
	if answer.before != nil {
		answer.before(r.closed, request)
		if request.Context().Err() != nil {
			return
		}
	}
	status := answer.write(w, r.take(request, body, answer))
	r.answered(at, status)
	switch answer.ending {
	case cut, lost:
		panic(http.ErrAbortHandler)
	case stalled:
		_ = http.NewResponseController(w).Flush()
		Hang().before(r.closed, request)
		panic(http.ErrAbortHandler)
	}
}

// record records a call, and returns its number and its answer.
func (r *Receiver) record(request *http.Request, body []byte) (int, Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls = append(r.calls, Call{
		At: time.Now(), Method: request.Method, Path: request.URL.Path, Header: request.Header.Clone(), Body: body,
	})
	r.notify()
	at := len(r.calls) - 1
	switch {
	case len(r.next) > 0:
		answer := r.next[0]
		r.next = r.next[1:]
		return at, answer
	case len(r.always) > 0:
		answer := r.always[0]
		r.always = append(r.always[1:], answer)
		return at, answer
	}
	return at, Answer{}
}

// take checks a call, applies it if it is accepted, and returns the consumer's response.
func (r *Receiver) take(request *http.Request, body []byte, answer Answer) reply {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.authorization != nil && !r.authorization(request) {
		r.faults = append(r.faults, fmt.Sprintf("%s %s lacks the required credentials", request.Method, request.URL.Path))
		return refuse(http.StatusUnauthorized, r.faults[len(r.faults)-1])
	}
	received, faults := r.check(request, body)
	if len(faults) > 0 {
		for _, fault := range faults {
			r.faults = append(r.faults, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, fault))
		}
		return refuse(http.StatusBadRequest, faults...)
	}
	if !answer.takes() {
		return reply{code: http.StatusOK}
	}
	return received.answer(r.index.apply(received))
}

func (r *Receiver) answered(at, status int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls[at].Status = status
	r.notify()
}

// notify wakes all callers of Await. The caller holds the mutex.
func (r *Receiver) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}
