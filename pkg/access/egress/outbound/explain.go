// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// Server describes a server in the explanation of an error.
type Server struct {
	// Host is the host, with its port.
	Host string
	// HostField and PortField are where the user set them, such as: the host of url.
	HostField, PortField string
	// Timeout is the time limit of a request.
	Timeout time.Duration
	// TimeoutHint is what the user can do about an exceeded limit. It may be empty.
	TimeoutHint string
	// Proxy describes the proxy of the request. It is empty if there is none.
	Proxy string
}

// Explain describes why a request to a server got no response and, where it is known, how to fix that.
func (s Server) Explain(err error) string {
	var ofProxy *proxy.Error
	switch {
	case errors.As(err, &ofProxy):
		return ofProxy.Error()
	case s.Proxy != "":
		return s.explain(err) + "; through the proxy " + s.Proxy
	}
	return s.explain(err)
}

// explain is Explain for errors that are not those of a proxy.
func (s Server) explain(err error) string {
	var (
		refused   *egress.RefusedError
		unknown   *proxy.UnresolvedError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		wrapped   *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s has not answered within %s%s", s.Host, s.Timeout, s.timeoutHint())
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &unknown):
		return unknown.Error()
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be resolved (%s): is %s right?", name.Name, name.Err, s.HostField)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refuses connections: does it run, and is %s right?", s.Host, s.PortField)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s answers without TLS: url has to begin with http://, or the port is another one", s.Host)
	case errors.As(err, &authority):
		return fmt.Sprintf("the certificate of %s is signed by an authority that is not known: put that authority into caBundle", s.Host)
	case errors.As(err, &hostname):
		return fmt.Sprintf("the certificate of %s is for another host: %s", s.Host, hostname.Error())
	case errors.As(err, &invalid):
		return fmt.Sprintf("the certificate of %s cannot be used: %s", s.Host, invalid.Error())
	case errors.As(err, &wrapped):
		// url.Error would repeat the address.
		return fmt.Sprintf("the call to %s failed: %s", s.Host, wrapped.Err)
	}
	return fmt.Sprintf("the call to %s failed: %s", s.Host, err)
}

func (s Server) timeoutHint() string {
	if s.TimeoutHint == "" {
		return ""
	}
	return "; " + s.TimeoutHint
}
