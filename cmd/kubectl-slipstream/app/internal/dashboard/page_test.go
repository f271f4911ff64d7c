// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a browser with the page of a running command.
type page struct {
	client *http.Client
	// origin is http://127.0.0.1:PORT, and code that of the link.
	origin, code string
	session      string
}

// open runs the command dashboard against a cluster, and returns its page without a session.
func open(t *testing.T, of *cluster, args ...string) *page {
	t.Helper()
	return start(t, append([]string{"--server", of.URL, "--kubeconfig", os.DevNull}, args...)...)
}

// launch runs a command until the test ends, and returns the first line that it prints. transport is that of its clients.
func launch(t *testing.T, transport *http.Transport, args ...string) string {
	t.Helper()
	out, printed := io.Pipe()
	command := app.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: printed, ErrOut: io.Discard})
	command.SetArgs(args)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := command.ExecuteContext(ctx)
		_ = printed.CloseWithError(io.EOF) // It returns no errors.
		ended <- err
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", args, err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s has printed nothing: %v", args, err)
	}
	return strings.TrimSpace(line)
}

// start runs the command dashboard, and returns its page without a session.
func start(t *testing.T, args ...string) *page {
	t.Helper()
	transport := &http.Transport{}
	link := launch(t, transport, append([]string{"dashboard"}, args...)...)
	origin, code, found := strings.Cut(link, "/#")
	if !found || !strings.HasPrefix(origin, "http://127.0.0.1:") || len(code) < 40 {
		t.Fatalf("the command has printed %q", link)
	}
	return &page{client: &http.Client{Transport: transport}, origin: origin, code: code}
}

// login runs the command dashboard against a cluster, and opens its link.
func login(t *testing.T, of *cluster, args ...string) *page {
	t.Helper()
	p := open(t, of, args...)
	p.login(t)
	return p
}

// login opens the link.
func (p *page) login(t *testing.T) {
	t.Helper()
	var opened struct{ Session string }
	p.read(t, "/api/session", map[string]string{"code": p.code}, &opened)
	if len(opened.Session) != 64 {
		t.Fatalf("the session is %q", opened.Session)
	}
	p.session = opened.Session
}

// request returns a request as the page sends it, which a test may change.
func (p *page) request(ctx context.Context, t *testing.T, path string, body any) *http.Request {
	t.Helper()
	content, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = string(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.origin+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", p.origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	if p.session != "" {
		r.Header.Set("X-Slipstream-Session", p.session)
	}
	return r
}

// response is a response that was read.
type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request, and reads the response.
func (p *page) do(t *testing.T, r *http.Request) response {
	t.Helper()
	received, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = received.Body.Close() }()
	body, err := io.ReadAll(received.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{received.StatusCode, received.Header, string(body)}
}

// call calls the API, and returns the status and the body.
func (p *page) call(t *testing.T, path string, body any) (int, string) {
	t.Helper()
	received := p.do(t, p.request(t.Context(), t, path, body))
	return received.status, received.body
}

// read calls the API, and decodes a successful response.
func (p *page) read(t *testing.T, path string, body, into any) {
	t.Helper()
	status, text := p.call(t, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, text)
	}
}

// message is one of a stream or of a run.
type message struct {
	Type, Resource, Error, User, Context, Namespace, Note, Command, Run, Out, Flags string
	Columns                                                                         []string
	Rows                                                                            []struct {
		Namespace, Name, Version, At string
		Labels                       map[string]string
		Cells                        []string
	}
	Deleted      [][2]string
	AllowChanges bool
	Exit         *int
}

// stream is a response in messages.
type stream struct {
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// stream opens a stream of messages.
func (p *page) stream(t *testing.T, path string, body any) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	response, err := p.client.Do(p.request(ctx, t, path, body))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s: status %d: %s", path, response.StatusCode, text)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<24)
	return &stream{lines, cancel}
}

// next returns the next message, nil after the last one.
func (s *stream) next(t *testing.T) *message {
	t.Helper()
	if !s.lines.Scan() {
		return nil
	}
	m := &message{}
	if err := json.Unmarshal(s.lines.Bytes(), m); err != nil {
		t.Fatalf("%v in %s", err, s.lines.Text())
	}
	return m
}

// until returns the first message of a type about a resource.
func (s *stream) until(t *testing.T, kind, resource string) *message {
	t.Helper()
	for m := s.next(t); m != nil; m = s.next(t) {
		if m.Type == kind && m.Resource == resource {
			return m
		}
	}
	t.Fatalf("the stream has ended without %s %s: %v", kind, resource, s.lines.Err())
	return nil
}

// run runs an action to its end.
func (p *page) run(t *testing.T, request string) (command, out string, end *message) {
	t.Helper()
	s := p.stream(t, "/api/run", request)
	var text bytes.Buffer
	for m := s.next(t); m != nil; m = s.next(t) {
		switch {
		case m.Command != "":
			command = m.Command
		case m.Exit != nil:
			end = m
		default:
			text.WriteString(m.Out + "\n")
		}
	}
	if end == nil {
		t.Fatalf("the run has no end: %s", text.String())
	}
	return command, text.String(), end
}
