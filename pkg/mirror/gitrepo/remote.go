// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Remote is a repository on a server. Its fields must not change after the first use; its methods may be called by
// several goroutines.
type Remote struct {
	// URL is an http, https, ssh or file URL, user@host:path, or a local path. Local repositories need the git command
	// and are read and written with the rights of this process: whoever takes URLs from others decides whether to
	// let them in.
	URL         string
	Credentials Credentials
	// Dial, if set, opens every connection to the server, so that it can refuse addresses; proxies named in the
	// environment are then not used, for Dial would see their address only. Nil dials directly or through those.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Limits bound what is read from the server, and how much memory that takes.
	Limits Limits

	parse sync.Once
	// endpoint is the URL without credentials, and credentials are those of the URL and of the field together.
	endpoint    *transport.Endpoint
	credentials Credentials
	parseError  error

	// completesPacks says that the server was seen to take packs whose deltas are against objects of its own.
	completesPacks atomic.Bool
	// lastPush is nil when the next push has to ask what the server offers.
	lastPush atomic.Pointer[lastPush]

	connect     sync.Once
	client      *http.Client
	clientError error
}

var (
	_ fmt.Formatter = &Remote{}
	_ fmt.Stringer  = &Remote{}
)

// String returns the URL without the credentials that may be in it.
func (r *Remote) String() string {
	if err := r.parsed(); err != nil {
		return redacted
	}
	return r.endpoint.String()
}

// Format writes String for every verb.
func (r *Remote) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, r.String()) }

// Check tells whether the repository can be reached and these credentials may read and write it. An empty repository
// passes; so does a branch that hooks or protections will refuse, since servers judge that only at the push.
func (r *Remote) Check(ctx context.Context) error {
	const doing = "check the repository"
	ctx, budget := r.begin(ctx)
	defer budget.end()
	// Writing is asked for first: some servers make a missing repository then.
	for _, service := range []service{receivePack, uploadPack} {
		session, err := r.open(ctx, service, budget)
		if err != nil {
			return r.failure(ctx, doing, err)
		}
		advertised, err := session.advertisement(ctx, "")
		session.close()
		if err != nil {
			return r.failure(ctx, doing, err)
		}
		if service == receivePack {
			r.completesPacks.Store(!advertised.Capabilities.Supports(noThin))
		}
	}
	return nil
}

// Close drops idle connections. The Remote can still be used.
func (r *Remote) Close() {
	if client, err := r.httpClient(); err == nil {
		client.CloseIdleConnections()
	}
}

// parsed reads the URL, once.
func (r *Remote) parsed() error {
	r.parse.Do(func() { r.parseError = r.parseURL() })
	return r.parseError
}

func (r *Remote) parseURL() error {
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil || r.URL == "" {
		return refuse(Invalid, "the repository URL cannot be read") // The reason would quote the URL, password and all.
	}
	r.credentials = r.Credentials.withURL(endpoint.User, endpoint.Password)
	endpoint.User, endpoint.Password = "", ""
	r.endpoint = endpoint
	return nil
}

// httpClient makes the client that all HTTP sessions share, once.
func (r *Remote) httpClient() (*http.Client, error) {
	r.connect.Do(func() { r.client, r.clientError = r.newHTTPClient() })
	return r.client, r.clientError
}

// open starts a session of the service, all of which counts against the budget.
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

// scrub takes credentials out of a text, those of the URL included.
func (r *Remote) scrub(text string) string {
	return r.Credentials.scrub(r.credentials.scrub(text))
}

// dial opens a connection for SSH.
func (r *Remote) dial(ctx context.Context, address string) (net.Conn, error) {
	dial := r.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	connection, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return connection, nil
}
