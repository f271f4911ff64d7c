// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
)

const (
	// timeLimit bounds a request, the response included.
	timeLimit = 30 * time.Second
	// maxResponse bounds the bytes that are read of a response.
	maxResponse = 1 << 20
	// maxUnpaged bounds the responses of lists that a host does not divide into pages.
	maxUnpaged = 8 << 20
)

// client makes the requests to one API.
type client struct {
	kind  Kind
	base  *url.URL
	http  *http.Client
	token func(ctx context.Context, refused string) (Token, error)
	clock clock.PassiveClock
}

func newClient(o Options, base *url.URL) *client {
	// A client of its own shares the transport, but neither cookies nor the redirect policy.
	requests := &http.Client{
		Transport:     o.Client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &client{o.Kind, base, requests, o.Token, o.Clock}
}

// call is one request.
type call struct {
	// op is the operation in errors.
	op, method string
	// path has the unescaped segments below the API.
	path  []string
	query url.Values
	// in is sent as JSON, and the response is decoded into out; either may be nil.
	in, out any
	// about is what a status 404 says does not exist, the repository if it is empty.
	about string
	// isReference reports whether that is named by the request, so that a status 404 is not about the pull request.
	isReference bool
	// verify returns the error that a response with a status of success contains. It may be nil.
	verify func() *Error
	// limit bounds the response, 0 for maxResponse.
	limit int64
	// url replaces base and path unless it is nil.
	url *url.URL
}

// do makes a request and returns the header of the response, if its status is a success. Every error is an *Error, except those of
// the function that returns the token.
func (c *client) do(ctx context.Context, call call) (http.Header, error) {
	token, err := c.token(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.op, err)
	}
	header, err := c.attempt(ctx, call, token)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Kind != Unauthorized {
		return header, err
	}
	renewed, renewErr := c.token(ctx, token.Value)
	switch {
	case renewErr != nil:
		return nil, fmt.Errorf("%s: %w", call.op, renewErr)
	case renewed == token:
		return header, err
	}
	return c.attempt(ctx, call, renewed)
}

// attempt makes a request with a token.
func (c *client) attempt(ctx context.Context, call call, token Token) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	request, err := c.request(ctx, call, token)
	if err != nil {
		return nil, err
	}
	redactor := outbound.NewRedactor([]string{token.Value}, token.Username+":"+token.Value)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, call, redactor, err)
	}
	defer func() { _ = response.Body.Close() }()
	limit := call.limit
	if limit == 0 {
		limit = maxResponse
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, c.unreachable(ctx, call, redactor, err)
	}
	received := reply{status: response.StatusCode, header: response.Header, body: body, tooLarge: int64(len(body)) > limit}
	return received.header, c.interpret(call, received, redactor)
}

// request returns the HTTP request. Its errors quote nothing, because values such as the token could be the reason.
func (c *client) request(ctx context.Context, call call, token Token) (*http.Request, error) {
	address, err := c.address(call)
	if err != nil {
		return nil, &Error{Kind: Invalid, Op: call.op, Message: "the URL of the API cannot be used"}
	}
	var body io.Reader = http.NoBody
	if call.in != nil {
		encoded, err := json.Marshal(call.in)
		if err != nil {
			return nil, &Error{Kind: Invalid, Op: call.op, Message: "the request cannot be encoded: " + err.Error()}
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, address.String(), body)
	if err != nil {
		return nil, &Error{Kind: Invalid, Op: call.op, Message: "the URL of the API cannot be used"}
	}
	request.Header.Set("User-Agent", outbound.UserAgent)
	request.Header.Set("Accept", "application/json")
	// A compressed response would be read with its decompressed size, which can be zero however much was sent.
	request.Header.Set("Accept-Encoding", "identity")
	if call.in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.kind == GitHub {
		request.Header.Set("Accept", "application/vnd.github+json")
		request.Header.Set("X-Github-Api-Version", "2022-11-28")
	}
	return request, c.authorize(call, request.Header, token)
}

func (c *client) address(call call) (*url.URL, error) {
	if call.url != nil {
		return call.url, nil
	}
	escaped := make([]string, len(call.path))
	for i, segment := range call.path {
		escaped[i] = url.PathEscape(segment)
	}
	address, err := url.Parse(c.base.String() + "/" + strings.Join(escaped, "/"))
	if err != nil {
		return nil, err
	}
	address.RawQuery = call.query.Encode()
	return address, nil
}

func (c *client) authorize(call call, header http.Header, token Token) error {
	if token.Value == "" || strings.ContainsFunc(token.Value+token.Username, func(r rune) bool { return r < ' ' || r == '\x7f' }) {
		return &Error{Kind: Unauthorized, Op: call.op, Message: "the token is empty or contains a line end: replace it in the Secret"}
	}
	switch {
	case token.Basic && (c.kind == Gitea || c.kind == AzureDevOps):
		(&http.Request{Header: header}).SetBasicAuth(token.Username, token.Value)
	case c.kind == Gitea:
		header.Set("Authorization", "token "+token.Value)
	default:
		header.Set("Authorization", "Bearer "+token.Value)
	}
	return nil
}

// unreachable returns the error of a request without a complete response.
func (c *client) unreachable(ctx context.Context, call call, redactor outbound.Redactor, err error) *Error {
	server := outbound.Server{
		Host: c.base.Host, HostField: "the host of repoUrl or host.apiURL", PortField: "its port", Timeout: timeLimit,
	}
	failed := &Error{Kind: Unreachable, Op: call.op, Message: show(redactor, server.Explain(err))}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, context.DeadlineExceeded) {
		failed.cause = cause
	}
	return failed
}

// reply is a response.
type reply struct {
	status   int
	header   http.Header
	body     []byte
	tooLarge bool
}

// isJSON reports whether the response says that it is JSON. Proxies and login pages send HTML.
func (r reply) isJSON() bool {
	media, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// interpret decodes a success and returns the error of a failure.
func (c *client) interpret(call call, received reply, redactor outbound.Redactor) error {
	if err := c.failure(call, received, redactor); err != nil {
		return err
	}
	switch {
	case received.tooLarge:
		return &Error{Kind: Protocol, Op: call.op, Message: fmt.Sprintf("%s sent more than the %d KiB that are read", c.base.Host,
			max(call.limit, maxResponse)>>10), tooLarge: true}
	case call.out == nil:
		return nil
	case !received.isJSON():
		return &Error{Kind: Protocol, Op: call.op, Message: fmt.Sprintf("%s does not respond with JSON: the API has another URL, for host.apiURL, "+
			"or a proxy responds in its place", c.base.Host)}
	}
	if err := json.Unmarshal(received.body, call.out); err != nil {
		return &Error{Kind: Protocol, Op: call.op, Message: show(redactor, c.base.Host+" sent JSON that cannot be read: "+err.Error())}
	}
	if call.verify == nil {
		return nil
	}
	if failed := call.verify(); failed != nil {
		failed.Op, failed.Message = call.op, show(redactor, failed.Message)
		return failed
	}
	return nil
}
