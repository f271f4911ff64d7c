// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// Remote is a repository on a server. Its fields must not change after the first use. It is safe for concurrent use.
type Remote struct {
	// URL is an http, https, ssh or file URL, user@host:path, or a local path. Local repositories need the git command and
	// are read and written with the permissions of this process: a caller that accepts URLs from users must validate them.
	URL         string
	Credentials Credentials
	// Network opens every connection to the server. If it is nil, connections are direct, to any address.
	Network *proxy.Network
	// Proxy is the proxy to the server. If it is nil, Network decides.
	Proxy *proxy.Proxy
	// Limits bound what is read from the server, and how much memory that takes.
	Limits Limits
	// Now, if set, is the clock by which SSH certificates are valid.
	Now func() time.Time

	parse sync.Once
	// endpoint is the URL without credentials; credentials combine those of the URL and of the field.
	endpoint    *transport.Endpoint
	credentials Credentials
	parseError  error

	// completesPacks is set if the server accepts thin packs.
	completesPacks atomic.Bool
	// lastPush is nil if the next push needs an advertisement.
	lastPush atomic.Pointer[lastPush]
	// redirect is the URL to which the server has redirected, nil if it has not.
	redirect atomic.Pointer[string]

	// sent are the last tokens that were sent, the newest first. A server may quote them.
	sent atomic.Pointer[[2]string]

	connect     sync.Once
	client      *http.Client
	clientError error
}

var (
	_ fmt.Formatter = &Remote{}
	_ fmt.Stringer  = &Remote{}
)

// String returns the URL without credentials.
func (r *Remote) String() string {
	if err := r.parsed(); err != nil {
		return redacted
	}
	return r.endpoint.String()
}

// Format writes String for every verb.
func (r *Remote) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, r.String()) }

// Check returns an error unless the repository can be reached and the credentials allow reading and writing. An empty
// repository passes. It does not check hooks and branch protection, which servers apply only at a push.
func (r *Remote) Check(ctx context.Context) error {
	const op = "check the repository"
	ctx, budget := r.begin(ctx)
	defer budget.end()
	// receive-pack comes first, because some servers create a missing repository then.
	for _, service := range []service{receivePack, uploadPack} {
		session, err := r.open(ctx, service, budget)
		if err != nil {
			return r.failure(ctx, op, err)
		}
		advertised, err := session.advertisement(ctx, "")
		session.close()
		if err != nil {
			return r.failure(ctx, op, r.explainForbidden(ctx, budget, err))
		}
		if service == receivePack {
			r.completesPacks.Store(!advertised.Capabilities.Supports(noThin))
		}
	}
	return nil
}

// Redirect returns the URL, without credentials, to which the server redirects HTTP requests for the repository, as it does after the
// repository was renamed. It is empty if no request was redirected.
func (r *Remote) Redirect() string {
	if url := r.redirect.Load(); url != nil {
		return *url
	}
	return ""
}

// Close drops idle connections. The Remote can still be used.
func (r *Remote) Close() {
	if client, err := r.httpClient(); err == nil {
		client.CloseIdleConnections()
	}
}

// parsed parses the URL, once.
func (r *Remote) parsed() error {
	r.parse.Do(func() { r.parseError = r.parseURL() })
	return r.parseError
}

func (r *Remote) parseURL() error {
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil || r.URL == "" {
		return refuse(Invalid, "the repository URL cannot be read") // err would quote the URL with its password.
	}
	r.credentials = r.Credentials.withURL(endpoint.User, endpoint.Password)
	endpoint.User, endpoint.Password = "", ""
	r.endpoint = endpoint
	return nil
}

// httpClient returns the client that all HTTP sessions share.
func (r *Remote) httpClient() (*http.Client, error) {
	r.connect.Do(func() { r.client, r.clientError = r.newHTTPClient() })
	return r.client, r.clientError
}

// open starts a session of the service. Everything it reads counts against the budget.
func (r *Remote) open(ctx context.Context, service service, budget *budget) (session, error) {
	if err := r.parsed(); err != nil {
		return nil, err
	}
	switch r.endpoint.Protocol {
	case "http", "https":
		return r.openHTTP(service, budget)
	case "ssh":
		return r.openSSH(ctx, service, budget)
	case "file":
		return r.openLocal(ctx, service, budget)
	default:
		return nil, refuse(Invalid, "repository URLs of scheme %q are not supported", r.endpoint.Protocol)
	}
}

// token returns the current token, empty if the credentials have none. refused is one that the server has refused.
func (r *Remote) token(ctx context.Context, refused string) (string, error) {
	if r.Credentials.Tokens == nil {
		return "", nil
	}
	token, err := r.Credentials.Tokens.Token(ctx, refused)
	if err != nil {
		return "", err //nolint:wrapcheck // It says that no token was obtained.
	}
	for {
		sent := r.sent.Load()
		if sent != nil && sent[0] == token || r.sent.CompareAndSwap(sent, withSent(sent, token)) {
			return token, nil
		}
	}
}

// withSent returns the last two tokens after one was sent.
func withSent(sent *[2]string, token string) *[2]string {
	if sent == nil {
		return &[2]string{token}
	}
	return &[2]string{token, sent[0]}
}

// scrub removes the credentials from a text, those of the URL and tokens included.
func (r *Remote) scrub(text string) string {
	if sent := r.sent.Load(); sent != nil {
		for _, token := range sent {
			text = Credentials{Username: r.credentials.Username, Password: token}.scrub(text)
		}
	}
	username, password := r.Proxy.Credentials()
	ofProxy := Credentials{Username: username, Password: password}
	return ofProxy.scrub(r.Credentials.scrub(r.credentials.scrub(text)))
}

// dialer returns what connects to the server.
func (r *Remote) dialer() *proxy.Dialer {
	network := r.Network
	if network == nil {
		network = &proxy.Network{Direct: (&net.Dialer{Timeout: dialTimeout}).DialContext}
	}
	return network.Through(r.Proxy)
}

// through names the proxy in a message about the connection. It is empty if there is none, or if the error is about the proxy.
func (r *Remote) through(err error) string {
	var ofProxy *proxy.Error
	if errors.As(err, &ofProxy) || r.parsed() != nil {
		return ""
	}
	address, parseErr := url.Parse(r.endpoint.String())
	if parseErr != nil {
		return ""
	}
	if used := r.dialer().Proxy(address.Scheme, proxy.AddressOf(address)); used != nil {
		return "; through the proxy " + used.String()
	}
	return ""
}

// now returns the time by which SSH certificates are valid.
func (r *Remote) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// dial opens the connection for SSH.
func (r *Remote) dial(ctx context.Context, address string) (net.Conn, error) {
	connection, err := r.dialer().DialSSH(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return connection, nil
}
