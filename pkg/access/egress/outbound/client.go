// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// Dial connects to an address, like egress.Policy.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

const (
	// UserAgent names the server in requests.
	UserAgent = "slipstream"
	// maxResponse bounds the bytes that are read of a response's headers, and of its body.
	maxResponse = 64 << 10
	// idleTimeout is how long an idle connection stays open: several requests of a busy cluster share one.
	idleTimeout = 90 * time.Second
)

// Client makes HTTP requests to one server, over connections of its own, one at a time.
type Client struct {
	network  *proxy.Network
	caBundle []byte
	// proxy is the proxy of dialer and http; nil if the environment decides.
	proxy  *proxy.Proxy
	dialer *proxy.Dialer
	http   *http.Client
}

// NewClient returns a Client that trusts the authorities in a bundle, or the system's if it is empty. It uses the proxies of the
// environment until UseProxy.
func NewClient(network *proxy.Network, caBundle []byte) (*Client, error) {
	c := &Client{network: network, caBundle: caBundle}
	return c, c.connect(nil)
}

// UseProxy has later requests use a proxy, or those of the environment if it is nil. Connections through another proxy, or through the
// same one with other credentials, are closed.
func (c *Client) UseProxy(p *proxy.Proxy) error {
	if p.Equal(c.proxy) {
		return nil
	}
	c.Close()
	return c.connect(p)
}

func (c *Client) connect(p *proxy.Proxy) error {
	configuration, err := TLSConfig(c.caBundle)
	if err != nil {
		return err
	}
	c.proxy, c.dialer = p, c.network.Through(p)
	c.http = NewHTTPClient(c.dialer, configuration)
	return nil
}

// Proxy describes the proxy of requests to a URL. It is empty if there is none.
func (c *Client) Proxy(u *url.URL) string {
	if through := c.dialer.Proxy(u.Scheme, proxy.AddressOf(u)); through != nil {
		return through.String()
	}
	return ""
}

// NewHTTPClient returns an HTTP client that connects with a dialer.
//
// It follows no redirects, so that content and credentials reach only the host that a user named. It does not decompress, so that the
// size of a response bounds what is read. It speaks only HTTP/1.1: requests are sequential, and over HTTP/2 a server can send empty frames
// without end, which are read, acknowledged and logged as long as the connection lasts. The caller bounds the time of each request, and
// what it reads of a body.
func NewHTTPClient(dialer *proxy.Dialer, configuration *tls.Config) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: traced{dialer.RoundTripper(&http.Transport{
			TLSClientConfig: configuration, Protocols: &protocols, DisableCompression: true,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxResponse,
		})},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// TLSConfig returns a configuration that trusts the authorities in a bundle, or the system's if it is empty.
func TLSConfig(caBundle []byte) (*tls.Config, error) {
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

// Close closes idle connections. A connection whose response is still being read closes after its idle timeout.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Response is a response with the first bytes of its body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes an idempotent request. The context of the request bounds its time, and that of reading the response.
func (c *Client) Do(request *http.Request) (Response, error) {
	request.Header.Set("User-Agent", UserAgent)
	// This key, which the transport does not send, makes it retry on a new connection when the server has closed the idle one.
	request.Header["Idempotency-Key"] = nil
	received, err := c.http.Do(request) //nolint:gosec // The dialer refuses addresses that users must not reach.
	if err != nil {
		// Otherwise the transport keeps dialing for later requests, forever if the host never responds.
		c.http.CloseIdleConnections()
		return Response{}, err
	}
	defer func() { _ = received.Body.Close() }()
	body, err := readBody(received)
	if err != nil {
		return Response{}, fmt.Errorf("read the answer (%s): %w", received.Status, err)
	}
	return Response{received.StatusCode, received.Header, body}, nil
}

// readBody reads the part of a response that is used. A compressed body, which was not requested, counts as empty, and so does the
// stream after a protocol switch, which the timeout of the request does not end.
func readBody(received *http.Response) ([]byte, error) {
	if received.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(received.Body, maxResponse))
	if encoding := received.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		body = nil
	}
	return body, err
}
