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

// Receiver takes calls of one format.
type Receiver struct {
	// URL is what a sink has as its url.
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

// Call is a request that came, and what became of it.
type Call struct {
	At           time.Time
	Method, Path string
	Header       http.Header
	Body         []byte
	// Status is that of the answer. It is 0 before there is one, and when the connection was closed instead.
	Status int
}

// Option changes a receiver.
type Option func(*Receiver)

// TLS has the receiver speak HTTPS, with a certificate that nobody knows.
func TLS() Option { return func(r *Receiver) { r.server.StartTLS() } }

// Below has it at a path of its server.
func Below(path string) Option { return func(r *Receiver) { r.prefix = path } }

// New starts a receiver on the loopback interface. It ends with the test, which fails then if there are faults that it has not
// asked for.
func New(t testing.TB, name v1alpha1.PipelineFormat, options ...Option) *Receiver {
	t.Helper()
	format, found := formats[name]
	if !found {
		t.Fatalf("there is no receiver of the format %q", name)
	}
	r := &Receiver{format: format, closed: make(chan struct{}), index: index{}, changed: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it say so themselves
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
			t.Errorf("the receiver of %s at %s was sent what it must not be: %s", name, r.URL, fault)
		}
	})
	return r
}

// CABundle is the authority of the certificate, as PEM; nil without TLS.
func (r *Receiver) CABundle() []byte {
	certificate := r.server.Certificate()
	if certificate == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// Require has calls answered 401 from now on that do not show the bearer token. That they do not is a fault.
func (r *Receiver) Require(token string) {
	r.require(func(request *http.Request) bool { return request.Header.Get("Authorization") == "Bearer "+token })
}

// RequireBasic is Require with a name and a password.
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

// Next has the next calls answered so, one after the other.
func (r *Receiver) Next(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next = append(r.next, answers...)
}

// Always has calls for which Next has no answer answered so, in turn; without answers as the consumer does.
func (r *Receiver) Always(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.always = slices.Clone(answers)
}

// Calls are those that came, in their order.
func (r *Receiver) Calls() []Call {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.calls)
}

// Faults are what was wrong with calls since they were asked for last.
func (r *Receiver) Faults() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	faults := r.faults
	r.faults = nil
	return faults
}

// Known is what the consumer knows after the calls that were taken, sorted: instances as namespace/apiVersion/kind/name, with the
// namespace _cluster for those in none; definitions by their names, or by Kind.group where that is all that is told.
func (r *Receiver) Known() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.index.names()
}

// Object is what it was told last of an instance or definition that it knows.
func (r *Receiver) Object(name string) (Object, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.index.named(name)
}

// Await waits until a condition of calls, faults or what is known holds. It is tried whenever a call has come or has been answered.
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
			return fmt.Errorf("wait for calls, of which %d have come: %w", len(r.Calls()), ctx.Err())
		}
	}
}

// serve records a call, judges it, and answers it.
func (r *Receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		// The client has gone in the middle of its call.
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

// record notes that a call has come, and takes its answer.
func (r *Receiver) record(request *http.Request, body []byte) (int, Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls = append(r.calls, Call{
		At: time.Now(), Method: request.Method, Path: request.URL.Path, Header: request.Header.Clone(), Body: body,
	})
	r.tell()
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

// take checks the call and keeps what it says, and returns how the consumer answers.
func (r *Receiver) take(request *http.Request, body []byte, answer Answer) reply {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.authorization != nil && !r.authorization(request) {
		r.faults = append(r.faults, fmt.Sprintf("%s %s does not show what is required", request.Method, request.URL.Path))
		return refuse(http.StatusUnauthorized, r.faults[len(r.faults)-1])
	}
	told, faults := r.check(request, body)
	if len(faults) > 0 {
		for _, fault := range faults {
			r.faults = append(r.faults, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, fault))
		}
		return refuse(http.StatusBadRequest, faults...)
	}
	if !answer.takes() {
		return reply{code: http.StatusOK}
	}
	return told.answer(r.index.apply(told))
}

func (r *Receiver) answered(at, status int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls[at].Status = status
	r.tell()
}

// tell wakes those who wait. The mutex is held.
func (r *Receiver) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}
