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

// Dial connects to an address, as egress.Policy.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

const (
	// maxAnswer is how much of an answer is read, and of its headers.
	maxAnswer = 64 << 10
	// idleTimeout is how long a connection stays open when nothing is sent: several batches of a busy cluster share one.
	idleTimeout = 90 * time.Second
)

// newClient makes the client of one sink. It follows no redirect, so that neither objects nor credentials get anywhere but
// to the host that the sink names; it uses no proxy, because what dials must see the receiver's own address; it
// decompresses nothing, so that what is read is bounded by what is sent; and it speaks HTTP/1.1 only. Calls are made one after the other,
// for which HTTP/2 has no use, and in HTTP/2 a receiver can send frames without end that carry nothing, which are read, answered and
// logged for as long as the connection lasts.
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
			MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxAnswer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// tlsConfig trusts the authorities of a bundle, or those of the system when it is empty.
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
