// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

// Dial connects to an address, like egress.Policy.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

const (
	// maxResponse bounds the bytes that are read of a response's headers, and of its body.
	maxResponse = 64 << 10
	// idleTimeout is how long an idle connection stays open: several batches of a busy cluster share one.
	idleTimeout = 90 * time.Second
)

// newClient returns the HTTP client of one sink.
//
// It follows no redirects, so that objects and credentials reach only the host that the sink names. It uses no proxy, because the dialer
// must see the receiver's own address. It does not decompress, so that the size of a response bounds what is read. It speaks only HTTP/1.1:
// calls are sequential, and over HTTP/2 a receiver can send empty frames without end, which are read, acknowledged and logged as long as
// the connection lasts.
func newClient(dial Dial, caBundle []byte) (*http.Client, error) {
	configuration, err := tlsConfig(caBundle)
	if err != nil {
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: configuration, Protocols: &protocols, DisableCompression: true,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxResponse,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// tlsConfig returns a configuration that trusts the authorities in a bundle, or the system's if it is empty.
func tlsConfig(caBundle []byte) (*tls.Config, error) {
	configuration := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(caBundle) == 0 {
		return configuration, nil
	}
	configuration.RootCAs = x509.NewCertPool()
	if !configuration.RootCAs.AppendCertsFromPEM(caBundle) {
		return nil, errors.New("caBundle holds no certificate in PEM form")
	}
	return configuration, nil
}
