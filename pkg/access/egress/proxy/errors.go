// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/configbutler/slipstream/pkg/access/egress"
)

// Error is a failure of a proxy. Its text says what to do. It has no credentials, and nothing that the proxy has written
// except the code of its reply.
type Error struct {
	proxy *Proxy
	text  string
	err   error
}

func (e *Error) Error() string { return fmt.Sprintf("the proxy %s %s", e.proxy, e.text) }

// Unwrap returns the underlying error, or nil.
func (e *Error) Unwrap() error { return e.err }

// failed returns an Error with a formatted text.
func (p *Proxy) failed(err error, format string, arguments ...any) error {
	return &Error{p, fmt.Sprintf(format, arguments...), err}
}

// UnresolvedError is returned for a name that cannot be resolved here, where only addresses can be sent to the proxy.
type UnresolvedError struct {
	// Host is the name.
	Host string
}

func (e *UnresolvedError) Error() string {
	return fmt.Sprintf("%s cannot be resolved here, and only https works through a proxy without that: use https, or an address", e.Host)
}

// unreachable returns the Error of a proxy to which there is no connection.
func (p *Proxy) unreachable(err error) error {
	var (
		refused   *egress.RefusedError
		name      *net.DNSError
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &refused):
		return p.failed(err, "has a refused address: %s", refused)
	case errors.As(err, &name):
		return p.failed(err, "cannot be resolved (%s): is its host right?", name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return p.failed(err, "refuses connections: does it run, and is its port right?")
	case errors.As(err, &record):
		return p.failed(err, "answers without TLS: its address has to begin with http://, or its port is another one")
	case errors.As(err, &authority):
		return p.failed(err, "has a certificate of an authority that is not known: %s", p.authorityHint())
	case errors.As(err, &hostname):
		return p.failed(err, "has a certificate for another host: is its host right?")
	case errors.As(err, &invalid):
		return p.failed(err, "has a certificate that cannot be used: %s", invalid)
	case isTimeout(err):
		return p.failed(err, "cannot be reached in time: does it run, and is its address right?")
	case isClosed(err):
		return p.failed(err, "closes the connection: is its address right?")
	}
	return p.failed(err, "cannot be reached: is its address right?")
}

// authorityHint says where the authorities of a proxy can be added.
func (p *Proxy) authorityHint() string {
	if p.trusted {
		return "the image has to trust it (SSL_CERT_FILE)"
	}
	return "put that authority into caBundle of the Secret"
}

// interrupted returns the Error of a proxy that did not reply.
func (p *Proxy) interrupted(err error, target string) error {
	switch {
	case isTimeout(err):
		return p.failed(err, "has not connected to %s within %s: is it overloaded, or %s down?", target, timeLimit, target)
	case isClosed(err):
		return p.failed(err, "closes the connection before it has connected to %s", target)
	}
	return p.failed(err, "does not reply as %s does: is its address right?", p.kind())
}

// unauthorized returns the Error of a proxy that does not accept the credentials, or wants some.
func (p *Proxy) unauthorized(reply string) error {
	if p.username == "" {
		return p.failed(nil, "wants credentials (%s): add username and password", reply)
	}
	return p.failed(nil, "refuses the credentials (%s): check username and password", reply)
}

func (p *Proxy) kind() string {
	if p.isSOCKS() {
		return "a SOCKS5 proxy"
	}
	return "an HTTP proxy"
}

// ofStatus returns the Error of a reply to CONNECT other than success.
func (p *Proxy) ofStatus(status int, target string) error {
	reply := fmt.Sprintf("%d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusProxyAuthRequired:
		return p.unauthorized(reply)
	case status == http.StatusForbidden:
		return p.failed(nil, "forbids connections to %s (%s): allow it there", target, reply)
	case status >= http.StatusInternalServerError || status == http.StatusNotFound || status == http.StatusTooManyRequests:
		return p.failed(nil, "cannot connect to %s (%s)", target, reply)
	}
	return p.failed(nil, "does not connect to %s (%s): is it an HTTP proxy, and is its scheme right?", target, reply)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isClosed(err error) bool {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return false
}
