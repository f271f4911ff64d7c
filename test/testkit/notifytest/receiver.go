// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// maxBody is the maximum size of a request, in bytes.
const maxBody = 1 << 20

// Receiver is an HTTP server that checks requests.
type Receiver struct {
	// URL is the url of a sink, or the apiURL of a bot.
	URL string

	server *httptest.Server
	check  check
	closed chan struct{}

	mutex    sync.Mutex
	next     []Answer
	always   []Answer
	requests []Request
	faults   []string
}

// check returns the response to a request, and its faults.
type check func(request Request) (Answer, []string)

// Request is a received request.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
	// Time is when it was received.
	Time time.Time
	// Status is the status of the response. It is 0 if there is none.
	Status int
}

// Answer is a response.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Lost closes the connection instead of responding.
	Lost bool
	// Hangs sends no response until the client disconnects.
	Hangs bool
}

// start starts a receiver with HTTPS on the loopback interface, which runs until the end of the test. Faults that the test has not read
// with Faults fail it then.
func start(t testing.TB, path string, check check) *Receiver {
	t.Helper()
	r := &Receiver{check: check, closed: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients report that they do not trust the certificate
	r.server.StartTLS()
	r.URL = r.server.URL + path
	t.Cleanup(func() {
		close(r.closed)
		r.server.CloseClientConnections()
		r.server.Close()
		for _, fault := range r.Faults() {
			t.Errorf("invalid request to %s: %s", r.server.URL, fault)
		}
	})
	return r
}

// CABundle returns the authority of the certificate as PEM.
func (r *Receiver) CABundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// Next sets the answers to the next requests, in order.
func (r *Receiver) Next(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.next = append(r.next, answers...)
}

// Always sets the answers to requests without an answer of Next. They are used in rotation. Without answers, the receiver responds like
// the service.
func (r *Receiver) Always(answers ...Answer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.always = slices.Clone(answers)
}

// Requests returns the received requests in order.
func (r *Receiver) Requests() []Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.requests)
}

// Faults returns the faults of requests since it was last called.
func (r *Receiver) Faults() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	faults := r.faults
	r.faults = nil
	return faults
}

func (r *Receiver) serve(w http.ResponseWriter, incoming *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, incoming.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	answer := r.answer(incoming.Method, Request{
		Path: incoming.URL.RequestURI(), Header: incoming.Header, Body: body, Time: time.Now(),
	})
	switch {
	case answer.Hangs:
		select {
		case <-r.closed:
		case <-incoming.Context().Done():
		}
		return
	case answer.Lost:
		panic(http.ErrAbortHandler)
	}
	for name, value := range answer.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.Status)
	_, _ = io.WriteString(w, answer.Body) // The client may have disconnected.
}

// answer records a request and returns its response.
func (r *Receiver) answer(method string, request Request) Answer {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	answer, faults := r.check(request)
	if method != http.MethodPost {
		faults = append(faults, "the method is "+method)
	}
	r.faults = append(r.faults, faults...)
	switch {
	case len(r.next) > 0:
		answer = r.next[0]
		r.next = r.next[1:]
	case len(r.always) > 0:
		answer = r.always[0]
		r.always = append(r.always[1:], answer)
	}
	if !answer.Lost && !answer.Hangs {
		request.Status = answer.Status
	}
	r.requests = append(r.requests, request)
	return answer
}
