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

// ErrNotRunning is returned if no server listens in the data directory. A server that failed to create its socket can
// still lock the files.
var ErrNotRunning = errors.New("no server is running on this data directory")

const (
	// maxErrorText limits how much of an error's text is read.
	maxErrorText = 64 << 10

	// continueTimeout limits how long a command can take to decide whether it reads its input.
	continueTimeout = 10 * time.Second
)

// Client sends commands to the server that runs on a data directory.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the server on dir. It connects for each command.
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

// Do executes a command and returns its output. If the command fails, reading the output ends with that error, never
// with io.EOF alone. Do returns [ErrNotRunning] if there is no server, in which case nothing was done.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body io.Reader) (io.ReadCloser, error) {
	target := url.URL{Scheme: "http", Host: "server", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", path, err)
	}
	if body != nil {
		// Send no input to a command that fails at once.
		request.Header.Set("Expect", "100-continue")
	}
	response, err := c.http.Do(request)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case err != nil:
		return nil, fmt.Errorf("requesting %s from the running server: %w", path, err)
	case response.StatusCode == http.StatusOK:
		return &answer{response: response}, nil
	}
	defer func() { _ = response.Body.Close() }() // What is left of it is of no interest.
	return nil, refusal(response, path)
}

// refusal returns the error of a command that failed before any output.
func refusal(response *http.Response, path string) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorText))
	if err != nil {
		return fmt.Errorf("reading the error of the running server for %s: %w", path, err)
	}
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed {
		return fmt.Errorf("the running server does not support %s: it has another version, use the program of that version", path)
	}
	return &Error{text: strings.TrimSpace(string(text))}
}

// Error is an error in the server.
type Error struct {
	text string
}

func (e *Error) Error() string { return "running server: " + e.text }

// errorTrailer is the trailer with the error of a command that failed after its first output.
const errorTrailer = "Slipstream-Error"

// encodeError encodes an error as a header value, which must not contain line breaks.
func encodeError(err error) string { return url.QueryEscape(err.Error()) }

// answer is the body of a response, followed by the error in its trailer.
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
