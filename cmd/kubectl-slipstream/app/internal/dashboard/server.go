// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
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

// question is a refusal after which the page asks the user for something.
type question struct {
	*refusal
	// ask is askLink, askLogin, askReload or askNamespace.
	ask string
}

// Unwrap returns the refusal.
func (q *question) Unwrap() error { return q.refusal }

// What the page asks for: the link that the command prints, a login at the proxy, to be loaded again for another user, or a namespace.
const askLink, askLogin, askReload, askNamespace = "link", "login", "reload", "namespace"

// noLogin is the refusal of a request without a session of the command.
func noLogin(text, do string) error {
	return &question{&refusal{http.StatusUnauthorized, text, do}, askLink}
}

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

// sessionRequest is the request for a session.
type sessionRequest struct {
	// Code is that of a link.
	Code string `json:"code"`
	// Namespace is the one to show, empty for all.
	Namespace string `json:"namespace"`
}

// login is a user for whom a session is opened.
type login struct {
	workspace *workspace
	// identity is nil if there is only one user.
	identity *identity
}

// logins decide who may open a session, and use it.
type logins interface {
	// open returns the user of a request for a session.
	open(r *http.Request, request *sessionRequest) (*login, error)
	// check refuses a request of another user than that of its session.
	check(r *http.Request, of *session) error
	// ended returns the refusal of a request without a session, or whose user the API server does not know.
	ended() error
}

// server is the server of the page.
type server struct {
	guard    *guard
	sessions *sessions
	logins   logins
	// used is called with each request.
	used func()
}

// routes are the calls of the API that need a session.
var routes = map[string]func(*workspace, *call) error{
	"/api/stream": (*workspace).stream, "/api/list": (*workspace).list, "/api/object": (*workspace).object, "/api/change": (*workspace).change,
	"/api/actions": (*workspace).actions, "/api/run": (*workspace).run, "/api/patch": (*workspace).patch, "/api/allow": (*workspace).setAllow,
}

// The other calls of the API.
const (
	sessionPath = "/api/session"
	endPath     = "/api/end"
)

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if err := s.serve(w, r); err != nil && !errors.Is(err, errClosed) {
		fail(w, err)
	}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) error {
	if err := s.guard.checkHost(r); err != nil {
		return err
	}
	if file, found := staticFiles[r.URL.Path]; found {
		return file.serve(w, r)
	}
	handle, found := routes[r.URL.Path]
	if !found && r.URL.Path != sessionPath && r.URL.Path != endPath {
		return &refusal{http.StatusNotFound, "There is nothing here", ""}
	}
	if err := s.guard.checkCall(r); err != nil {
		return err
	}
	c := &call{w: w, r: r}
	if r.URL.Path == sessionPath {
		return s.openSession(r.Context(), c)
	}
	if c.session = s.sessions.find(r.Header.Get(sessionHeader)); c.session == nil {
		return s.logins.ended()
	}
	if err := s.logins.check(r, c.session); err != nil {
		if asked := (*question)(nil); errors.As(err, &asked) && asked.ask == askReload {
			s.sessions.end(c.session) // The browser has another user now.
		}
		return err
	}
	s.used()
	if !found {
		return s.end(c)
	}
	return s.explain(r.Context(), c.session, handle(c.session.workspace, c))
}

// explain returns what the page shows of the error of a call.
func (s *server) explain(ctx context.Context, of *session, err error) error {
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	if apierrors.IsUnauthorized(err) && of.identity != nil {
		s.sessions.end(of)
		return s.logins.ended()
	}
	return of.cluster.refusal(ctx, err)
}

// fail responds with an error.
func fail(w http.ResponseWriter, err error) {
	refused := &refusal{http.StatusInternalServerError, "The page cannot do this", ""}
	_ = errors.As(err, &refused) // All others are of the files of the page, which are in the program.
	response := map[string]string{"error": refused.text, "do": refused.do}
	if asked := (*question)(nil); errors.As(err, &asked) {
		response["ask"] = asked.ask
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refused.status)
	_ = json.NewEncoder(w).Encode(response) // The client may have closed the connection.
}

// respond writes the response of a call.
func respond(c *call, value any) error {
	c.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(c.w).Encode(value)
}

func (s *server) openSession(ctx context.Context, c *call) error {
	var request sessionRequest
	if err := c.decode(&request); err != nil {
		return err
	}
	opened, err := s.logins.open(c.r, &request)
	if err != nil {
		return err
	}
	secret, err := s.sessions.open(opened)
	if err != nil {
		return err
	}
	if opened.identity != nil {
		klog.FromContext(ctx).Info("A user has opened the page", "user", opened.identity.name, "namespace", request.Namespace)
	}
	s.used()
	return respond(c, map[string]string{"session": secret, "user": opened.identity.user()})
}

func (s *server) end(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	s.sessions.end(c.session)
	return respond(c, struct{}{})
}
