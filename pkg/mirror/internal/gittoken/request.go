// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// Kind classifies an Error by what helps.
type Kind int

const (
	// Unreachable means that the server that issues tokens does not respond, or cannot now. Retry later.
	Unreachable Kind = iota
	// Refused means that it refuses the identity. The message says what to change.
	Refused
	// Invalid means that the configuration cannot be used. Nothing was sent.
	Invalid
)

// Error is a failure to obtain a token. Its text has neither tokens nor keys.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

func failed(kind Kind, format string, arguments ...any) error {
	return &Error{kind, fmt.Sprintf(format, arguments...)}
}

// maxQuoted bounds what is quoted of a server's message.
const maxQuoted = 300

// endpoint is a server that issues tokens, during one exchange.
type endpoint struct {
	client *outbound.Client
	host   string
	now    func() time.Time
	// secrets are removed from what the server says.
	secrets outbound.Redactor
}

// route is how the servers that issue tokens are reached: through a proxy, or as the environment says if that is nil. now is the clock by
// which tokens end.
type route struct {
	network *proxy.Network
	through *proxy.Proxy
	now     func() time.Time
}

// newEndpoint returns an endpoint that trusts the authorities in a bundle, or the system's if it is empty. The caller closes its client.
func newEndpoint(via route, address *url.URL, caBundle []byte, secrets ...string) (*endpoint, error) {
	client, err := outbound.NewClient(via.network, caBundle)
	if err == nil {
		err = client.UseProxy(via.through)
	}
	if err != nil {
		return nil, failed(Invalid, "%v", err)
	}
	_, password := via.through.Credentials()
	return &endpoint{client, address.Host, via.now, outbound.NewRedactor(append(secrets, password))}, nil
}

// response is a response, and how far the clock of its server is ahead of ours.
type response struct {
	outbound.Response
	skew time.Duration
}

// do makes a request. It returns an error if there is no response.
func (e *endpoint) do(ctx context.Context, method string, address *url.URL, header map[string]string, body []byte) (*response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, failed(Invalid, "the URL of %s cannot be used", e.host)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	received, err := e.client.Do(request)
	if err != nil {
		server := outbound.Server{Host: e.host, HostField: "the name", PortField: "the port", Timeout: exchangeTimeout}
		return nil, failed(Unreachable, "%s", e.secrets.Redact(server.Explain(err)))
	}
	r := &response{Response: received}
	if date, err := http.ParseTime(received.Header.Get("Date")); err == nil {
		r.skew = date.Sub(e.now())
	}
	return r, nil
}

// decode decodes the body.
func (e *endpoint) decode(r *response, into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return failed(Unreachable, "%s does not answer with JSON (%s): is it the API?", e.host, status(r.Status))
	}
	return nil
}

// quote returns a part of a text of the server that can be shown.
func (e *endpoint) quote(text string) string {
	text = e.secrets.Redact(text)
	if len(text) > maxQuoted {
		text = text[:maxQuoted]
	}
	return string(bytes.ToValidUTF8([]byte(text), nil))
}

// status returns a status code with its text.
func status(code int) string { return strconv.Itoa(code) + " " + http.StatusText(code) }

// isTemporary reports whether the same request can succeed later.
func (r *response) isTemporary() bool {
	switch r.Status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return true
	case http.StatusForbidden: // GitHub's rate limits.
		return r.Header.Get("X-Ratelimit-Remaining") == "0" || r.Header.Get("Retry-After") != ""
	}
	return r.Status >= http.StatusInternalServerError
}
