// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

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
)

// explain describes why a call to a host got no response and, where it is known, how to fix that.
func explain(err error, host string, timeout time.Duration) string {
	var (
		refused   *egress.RefusedError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		wrapped   *url.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s has not answered within %s; a longer timeout may help", host, timeout)
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be resolved (%s): is the host of url right?", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refuses connections: does it run, and is the port of url right?", host)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s answers without TLS: url has to begin with http://, or the port is another one", host)
	case errors.As(err, &authority):
		return fmt.Sprintf("the certificate of %s is signed by an authority that is not known: put that authority into caBundle", host)
	case errors.As(err, &hostname):
		return fmt.Sprintf("the certificate of %s is for another host: %s", host, hostname.Error())
	case errors.As(err, &invalid):
		return fmt.Sprintf("the certificate of %s cannot be used: %s", host, invalid.Error())
	case errors.As(err, &wrapped):
		// url.Error would repeat the address.
		return fmt.Sprintf("the call to %s failed: %s", host, wrapped.Err)
	}
	return fmt.Sprintf("the call to %s failed: %s", host, err)
}
