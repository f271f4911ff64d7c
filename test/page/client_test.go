// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/pagetest"
)

// sessionHeader is the header of the session in requests.
const sessionHeader = "X-Slipstream-Session"

// client sends requests to a dashboard as its page does, except for what a test changes.
type client struct {
	*pagetest.Dashboard
	session string
}

// change changes a request before it is sent.
type change func(*http.Request)

// response is what a dashboard has answered.
type response struct {
	status int
	header http.Header
	body   string
}

// newClient returns a client with a session of a user's dashboard.
func (s *testCluster) newClient(t *testing.T, user string) *client {
	t.Helper()
	d := s.dashboard(t, user)
	return newSession(t, d)
}

// newSession swaps a code for a session.
func newSession(t *testing.T, d *pagetest.Dashboard) *client {
	t.Helper()
	c := &client{Dashboard: d}
	got := c.post(t, "/api/session", map[string]any{"code": d.Code(t)})
	var answer struct {
		Session string `json:"session"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK || answer.Session == "" {
		t.Fatalf("a new code: %d %s", got.status, got.body)
	}
	c.session = answer.Session
	return c
}

// request returns a request of the page, with changes.
func (c *client) request(ctx context.Context, t *testing.T, method, path, body string, changes ...change) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.Address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", c.Address)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		if c.session != "" {
			r.Header.Set(sessionHeader, c.session)
		}
	}
	for _, each := range changes {
		each(r)
	}
	return r
}

// send sends a request and reads the whole response.
func (c *client) send(t *testing.T, method, path, body string, changes ...change) response {
	t.Helper()
	got, err := transport.RoundTrip(c.request(t.Context(), t, method, path, body, changes...))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return response{got.StatusCode, got.Header, string(text)}
}

// transport follows no redirects.
var transport = &http.Transport{DisableKeepAlives: true}

// post posts a value as JSON.
func (c *client) post(t *testing.T, path string, body any, changes ...change) response {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return c.send(t, http.MethodPost, path, string(text), changes...)
}

// expect posts a value, expects a status, and returns the body.
func (c *client) expect(t *testing.T, status int, path string, body any, changes ...change) string {
	t.Helper()
	got := c.post(t, path, body, changes...)
	if got.status != status {
		t.Errorf("POST %s %v: status %d, want %d: %s", path, body, got.status, status, got.body)
	}
	return got.body
}

// refused expects an error with a sentence.
func refused(t *testing.T, what string, got response, statuses ...int) {
	t.Helper()
	var answer struct{ Error string }
	_ = json.Unmarshal([]byte(got.body), &answer) // Without JSON there is no sentence, which fails below.
	for _, status := range statuses {
		if got.status == status && strings.Contains(answer.Error, " ") {
			return
		}
	}
	t.Errorf("%s: status %d, want one of %v and an error: %s", what, got.status, statuses, got.body)
}

// stream opens a stream and returns its messages until the function that it returns is called.
func (c *client) stream(t *testing.T, changes ...change) (next func() map[string]any, stop func(), status int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	got, err := transport.RoundTrip(c.request(ctx, t, http.MethodPost, "/api/stream", "{}", changes...))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		_ = got.Body.Close() // It was cancelled.
	}
	t.Cleanup(stop)
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 64<<20)
	return func() map[string]any {
		t.Helper()
		var message map[string]any
		if !lines.Scan() {
			t.Fatalf("the stream has ended: %v", lines.Err())
		}
		if err := json.NewDecoder(bytes.NewReader(lines.Bytes())).Decode(&message); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return message
	}, stop, got.StatusCode
}

// run runs an action, and returns the lines of the response.
func (c *client) run(t *testing.T, status int, action, resource, namespace, name string, more map[string]any) string {
	t.Helper()
	body := map[string]any{"action": action, "resource": resource, "namespace": namespace, "name": name, "options": map[string]any{}, "preview": false}
	maps.Copy(body, more)
	return c.expect(t, status, "/api/run", body)
}

func with(header, value string) change { return func(r *http.Request) { r.Header.Set(header, value) } }

func without(header string) change { return func(r *http.Request) { r.Header.Del(header) } }

func host(format string, arguments ...any) change {
	return func(r *http.Request) { r.Host = fmt.Sprintf(format, arguments...) }
}
