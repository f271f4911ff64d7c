// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package adminsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrNotRunning says that no server listens in the data directory. One whose socket
// could not be made still holds the files.
var ErrNotRunning = errors.New("no server is running on this data directory")

const (
	// maxErrorText bounds what is read of an error's text.
	maxErrorText = 64 << 10

	// continueTimeout is how long a command may take to decide whether it wants its input.
	continueTimeout = 10 * time.Second
)

// Client asks the server that runs on a data directory.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the server on dir. It connects when it is asked to.
func NewClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialIn(ctx, dir) }
	return &Client{http: &http.Client{
		Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: continueTimeout,
		},
	}}
}

func dialIn(ctx context.Context, dir string) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // Only read.
	return new(net.Dialer).DialContext(ctx, "unix", address(folder))
}

// Do asks for a command and returns its answer. Reading the answer ends with the
// error of the command if it fails on the way, never with io.EOF alone. It fails
// with [ErrNotRunning] if there is no server, after which nothing was done.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body io.Reader) (io.ReadCloser, error) {
	target := url.URL{Scheme: "http", Host: "server", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	if body != nil {
		// What is refused at once is not sent.
		request.Header.Set("Expect", "100-continue")
	}
	response, err := c.http.Do(request)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case err != nil:
		return nil, fmt.Errorf("asking the running server for %s: %w", path, err)
	case response.StatusCode == http.StatusOK:
		return &answer{response: response}, nil
	}
	defer func() { _ = response.Body.Close() }() // What is left of it is of no interest.
	return nil, refusal(response, path)
}

// refusal is the error that a server answered before any output.
func refusal(response *http.Response, path string) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorText))
	if err != nil {
		return fmt.Errorf("reading why the running server refuses %s: %w", path, err)
	}
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed {
		return fmt.Errorf("the running server does not know %s: it is of another version, use its own program", path)
	}
	return &Error{text: strings.TrimSpace(string(text))}
}

// Error is what went wrong in the server.
type Error struct {
	text string
}

func (e *Error) Error() string { return "running server: " + e.text }

// errorTrailer carries the error of a command whose answer had begun.
const errorTrailer = "Slipstream-Error"

// encodeError writes an error as the value of a header, which takes no line breaks.
func encodeError(err error) string { return url.QueryEscape(err.Error()) }

// answer is the body of a response, which ends with the error behind it.
type answer struct {
	response *http.Response
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.response.Body.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	encoded := a.response.Trailer.Get(errorTrailer)
	if encoded == "" {
		return n, io.EOF
	}
	text, err := url.QueryUnescape(encoded)
	if err != nil {
		text = encoded
	}
	return n, &Error{text: text}
}

func (a *answer) Close() error { return a.response.Body.Close() }
