// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxBody is the number of bytes of a request.
	maxBody = 64 << 10
	// sessionHeader has the session of a call.
	sessionHeader = "X-Slipstream-Session"
)

// refusal is an error with an HTTP status, and what the user can do about it.
type refusal struct {
	status   int
	text, do string
}

// Error returns the text.
func (e *refusal) Error() string { return e.text }

// errClosed is returned after a response has begun, when the client no longer reads it.
var errClosed = errors.New("the connection is closed")

// call is a call of the API that comes from the page.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	session *session
}

// decode reads the body of a call.
func (c *call) decode(into any) error {
	control := http.NewResponseController(c.w)
	if err := control.SetReadDeadline(time.Now().Add(headerTimeout)); err != nil {
		return err
	}
	defer func() { _ = control.SetReadDeadline(time.Time{}) }() // The connection is closed if it fails.
	decoder := json.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
			if more != nil {
				err = more
			}
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return &refusal{http.StatusRequestEntityTooLarge, "The request is too large", ""}
	}
	return &refusal{http.StatusBadRequest, "The request cannot be read: " + err.Error(), ""}
}

// server is the server of the page.
type server struct {
	guard    *guard
	sessions *sessions
	cluster  *cluster
	hub      *hub
	runs     *runs
	reviews  *reviews
	// allow is set if actions may write.
	allow atomic.Bool
	// used is called with each request.
	used func()
	// hello is the first message of each stream.
	hello hello
}

// routes are the calls of the API that need a session.
func (s *server) routes() map[string]func(*call) error {
	return map[string]func(*call) error{
		"/api/stream": s.stream, "/api/list": s.list, "/api/object": s.object, "/api/change": s.change,
		"/api/actions": s.actions, "/api/run": s.run, "/api/patch": s.patch, "/api/allow": s.setAllow, "/api/end": s.end,
	}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if err := s.serve(w, r); err != nil && !errors.Is(err, errClosed) {
		s.fail(w, r, err)
	}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) error {
	if err := s.guard.checkHost(r); err != nil {
		return err
	}
	if file, found := staticFiles[r.URL.Path]; found {
		return file.serve(w, r)
	}
	handle, found := s.routes()[r.URL.Path]
	if !found && r.URL.Path != "/api/session" {
		return &refusal{http.StatusNotFound, "There is nothing here", ""}
	}
	if err := s.guard.checkCall(r); err != nil {
		return err
	}
	c := &call{w: w, r: r}
	if !found {
		return s.openSession(c)
	}
	var err error
	if c.session, err = s.sessions.find(r.Header.Get(sessionHeader)); err != nil {
		return err
	}
	s.used()
	return handle(c)
}

// fail responds with an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	refused := s.cluster.refusal(r.Context(), err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refused.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": refused.text, "do": refused.do}) // The client may have closed the connection.
}

// respond writes the response of a call.
func respond(c *call, value any) error {
	c.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.w).Encode(value)
}

func (s *server) openSession(c *call) error {
	var request struct {
		Code string `json:"code"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	session, err := s.sessions.open(request.Code)
	if err != nil {
		return err
	}
	s.used()
	return respond(c, map[string]string{"session": session})
}

// setAllow is the switch that lets actions write, for all tabs.
func (s *server) setAllow(c *call) error {
	var request struct {
		Allow bool `json:"allow"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	s.allow.Store(request.Allow)
	s.hub.notifyAll()
	return respond(c, struct{}{})
}

// checkAllowed refuses to write unless the user has allowed it.
func (s *server) checkAllowed() error {
	if !s.allow.Load() {
		return &refusal{
			http.StatusForbidden, "Changes are not allowed: this page only shows the cluster",
			"Switch on Allow changes on the page, or start the command with --allow-changes",
		}
	}
	return nil
}

func (s *server) end(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	s.sessions.end(c.session)
	return respond(c, struct{}{})
}
