// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package adminsocket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
)

// serve answers in dir until the test ends.
func serve(t *testing.T, dir string, handlers map[string]adminsocket.Handler) *adminsocket.Socket {
	t.Helper()
	socket, err := adminsocket.Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, handler := range handlers {
		socket.Handle(pattern, handler)
	}
	served := make(chan error)
	go func() { served <- socket.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(socket.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// ask returns the whole answer of a command.
func ask(t *testing.T, dir, method, path string, query url.Values, body io.Reader) (string, error) {
	t.Helper()
	answer, err := adminsocket.NewClient(dir).Do(t.Context(), method, path, query, body)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Close() }()
	text, err := io.ReadAll(answer)
	return string(text), err
}

func TestDo(t *testing.T) {
	refused := errors.New("line one\nline two: 100 %")
	handlers := map[string]adminsocket.Handler{
		"POST /echo": func(answer io.Writer, request *http.Request) error {
			input, err := io.ReadAll(request.Body)
			if err != nil {
				return err
			}
			_, err = io.WriteString(answer, request.URL.Query().Get("greeting")+string(input))
			return err
		},
		"POST /picky": func(_ io.Writer, request *http.Request) error {
			_, err := io.ReadFull(request.Body, make([]byte, 10))
			return errors.Join(err, refused)
		},
		"GET /silent": func(io.Writer, *http.Request) error { return nil },
		"/refused":    func(io.Writer, *http.Request) error { return refused },
		"GET /late": func(answer io.Writer, _ *http.Request) error {
			_, err := io.WriteString(answer, "begun")
			return errors.Join(err, refused)
		},
	}
	tests := []struct {
		name, method, path string
		query              url.Values
		body               string
		want, wantError    string
	}{
		{
			name: "query, body and output", method: http.MethodPost, path: "/echo",
			query: url.Values{"greeting": {"hello "}}, body: strings.Repeat("x", 100_000),
			want: "hello " + strings.Repeat("x", 100_000),
		},
		{name: "no output", method: http.MethodGet, path: "/silent"},
		{name: "an error before any output", method: http.MethodGet, path: "/refused", wantError: "running server: " + refused.Error()},
		{name: "an error after output", method: http.MethodGet, path: "/late", want: "begun", wantError: "running server: " + refused.Error()},
		{
			name: "an error before the input", method: http.MethodPost, path: "/refused", body: strings.Repeat("x", 10<<20),
			wantError: "running server: " + refused.Error(),
		},
		{
			name: "an error in the middle of the input", method: http.MethodPost, path: "/picky", body: strings.Repeat("x", 10<<20),
			wantError: "running server: " + refused.Error(),
		},
		{name: "an unknown command", method: http.MethodGet, path: "/nothing", wantError: "does not support /nothing: it has another version"},
		{name: "a wrong method", method: http.MethodGet, path: "/echo", wantError: "does not support /echo"},
	}
	dir := t.TempDir()
	serve(t, dir, handlers)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ask(t, dir, tt.method, tt.path, tt.query, strings.NewReader(tt.body))
			if got != tt.want {
				t.Errorf("answer = %q, want %q", got, tt.want)
			}
			if (err == nil) != (tt.wantError == "") || err != nil && !strings.Contains(err.Error(), tt.wantError) {
				t.Errorf("error = %v, want %q", err, tt.wantError)
			}
		})
	}
}

// TestAnswerThatIsCutOff closes the socket in the middle of an answer.
func TestAnswerThatIsCutOff(t *testing.T) {
	dir, ended := t.TempDir(), make(chan error, 1)
	socket := serve(t, dir, map[string]adminsocket.Handler{
		"GET /endless": func(answer io.Writer, request *http.Request) error {
			if _, err := io.WriteString(answer, "begun"); err != nil {
				return err
			}
			<-request.Context().Done()
			ended <- request.Context().Err()
			return request.Context().Err()
		},
	})
	answer, err := adminsocket.NewClient(dir).Do(t.Context(), http.MethodGet, "/endless", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Close() }()
	if _, err := io.ReadFull(answer, make([]byte, len("begun"))); err != nil {
		t.Fatal(err)
	}
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context ended with %v", err)
		}
	default:
		t.Error("the socket was closed before its handler had ended")
	}
	if rest, err := io.ReadAll(answer); err == nil {
		t.Errorf("the answer ended with %q as if it were whole", rest)
	}
}

func TestSocketWithoutAListener(t *testing.T) {
	empty, left := t.TempDir(), t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(left, adminsocket.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"an empty folder":             empty,
		"no folder":                   filepath.Join(empty, "missing"),
		"the socket of a dead server": left,
	}
	for name, dir := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := ask(t, dir, http.MethodGet, "/", nil, nil); !errors.Is(err, adminsocket.ErrNotRunning) {
				t.Errorf("error = %v, want ErrNotRunning", err)
			}
		})
	}
	t.Run("is replaced by the next server's", func(t *testing.T) {
		serve(t, left, map[string]adminsocket.Handler{"GET /": func(io.Writer, *http.Request) error { return nil }})
		if _, err := ask(t, left, http.MethodGet, "/", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestSocketIsTheOwners(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	socket := serve(t, dir, nil)
	info, err := os.Stat(filepath.Join(dir, adminsocket.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode = %v, want a socket of 0600", info.Mode())
	}
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, map[string]adminsocket.Handler{"GET /": func(answer io.Writer, _ *http.Request) error {
		_, err := io.WriteString(answer, "here")
		return err
	}})
	if got, err := ask(t, dir, http.MethodGet, "/", nil, nil); got != "here" || err != nil {
		t.Errorf("answer = %q, %v", got, err)
	}
}
