// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress"
)

const (
	// timeLimit bounds how long it takes until a proxy has connected to a server.
	timeLimit = 30 * time.Second
	// dialTimeout bounds one attempt to connect to a proxy of the operator.
	dialTimeout = 10 * time.Second
)

// Network connects to the servers that users name.
type Network struct {
	// Direct connects to a server without a proxy, or to a proxy that a user names. It refuses the addresses that Check refuses.
	Direct func(ctx context.Context, network, address string) (net.Conn, error)
	// Check returns an error for an address to which no connection is allowed.
	Check func(netip.Addr) error
	// Environment has the proxies of the environment. It is nil if they are not used.
	Environment *Environment
	// Resolver resolves the names of servers behind proxies. It is net.DefaultResolver if it is nil.
	Resolver *net.Resolver
}

// NewNetwork returns a Network that follows a policy. environment is nil if the proxies of the environment are not used.
func NewNetwork(policy *egress.Policy, environment *Environment) *Network {
	return &Network{Direct: policy.DialContext, Check: policy.Check, Environment: environment}
}

// Through returns a Dialer that uses a proxy, or what the environment says if it is nil.
func (n *Network) Through(proxy *Proxy) *Dialer { return &Dialer{n, proxy} }

// Dialer opens connections to servers.
type Dialer struct {
	network *Network
	// proxy is nil if the environment decides.
	proxy *Proxy
}

// Proxy returns the proxy for a server of a scheme (http, https or ssh) at a host with a port; nil if connections are direct.
func (d *Dialer) Proxy(scheme, address string) *Proxy {
	if d.proxy != nil {
		return d.proxy
	}
	return d.network.Environment.proxy(scheme, address)
}

// AddressOf returns the host of a URL with its port, which can be that of the scheme http, https or ssh.
func AddressOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{schemeHTTP: "80", schemeHTTPS: "443", schemeSSH: "22"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// DialSSH connects to an SSH server, over SOCKS5 if there is a proxy.
func (d *Dialer) DialSSH(ctx context.Context, network, address string) (net.Conn, error) {
	return d.dial(ctx, schemeSSH, network, address)
}

// RoundTripper returns a RoundTripper that makes the connections of a transport with d.
func (d *Dialer) RoundTripper(transport *http.Transport) http.RoundTripper {
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		scheme, _ := ctx.Value(schemeKey{}).(string)
		return d.dial(ctx, scheme, network, address)
	}
	return &roundTripper{transport}
}

// schemeKey is the key of the scheme of a request in its context, which the dialer of a transport receives.
type schemeKey struct{}

// roundTripper gives the dialer of its transport the scheme of each request.
type roundTripper struct{ transport *http.Transport }

// RoundTrip makes a request.
func (r *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := context.WithValue(request.Context(), schemeKey{}, request.URL.Scheme)
	return r.transport.RoundTrip(request.WithContext(ctx))
}

// CloseIdleConnections closes the connections that no request uses.
func (r *roundTripper) CloseIdleConnections() { r.transport.CloseIdleConnections() }

// dial connects to a server of a scheme.
func (d *Dialer) dial(ctx context.Context, scheme, network, address string) (net.Conn, error) {
	proxy := d.Proxy(scheme, address)
	if proxy == nil {
		return d.network.Direct(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	target, err := d.network.target(ctx, address, scheme == schemeHTTPS)
	if err != nil {
		return nil, err
	}
	if scheme == schemeSSH && !proxy.ForwardsSSH() {
		return nil, proxy.failed(nil, "cannot be used for SSH: a SOCKS5 proxy can, with an address that begins with socks5://")
	}
	connection, err := d.network.connect(ctx, proxy)
	if err != nil {
		return nil, proxy.unreachable(err)
	}
	return proxy.tunnel(ctx, connection, target)
}

// connect connects to a proxy, with TLS for an HTTPS proxy.
func (n *Network) connect(ctx context.Context, proxy *Proxy) (net.Conn, error) {
	dial := n.Direct
	if proxy.trusted {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	connection, err := dial(ctx, "tcp", proxy.host)
	if err != nil || proxy.scheme != schemeHTTPS {
		return connection, err
	}
	return proxy.encrypt(ctx, connection)
}
