// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/http/httpproxy"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The names that resolve, and the name of servers' certificates (of httptest) that does not.
const (
	known     = "known.example.org"
	unknown   = "example.com"
	publicIP  = "203.0.113.7"
	publicIP6 = "2001:db8::7"
)

// fixture is a network with names of its own. Connections to this host are allowed to clients, so that they reach proxies, and the
// policy for targets is that of the server.
type fixture struct {
	*testing.T
	network *proxy.Network
}

// names are the names that resolve.
var names = map[string][]netip.Addr{
	known: addrs(publicIP6, publicIP), "metadata.example.org": addrs("169.254.169.254"), "loopback.example.org": addrs("127.0.0.1"),
	"api.example.org": addrs("10.96.0.1"), "mixed.example.org": addrs(publicIP, "169.254.169.254"),
	"mixed6.example.org": addrs(publicIP, "fe80::1"), "mapped.example.org": addrs("::ffff:169.254.169.254"),
	"nat64.example.org": addrs("64:ff9b::a9fe:a9fe"),
}

func newFixture(t *testing.T, allow ...string) *fixture {
	t.Helper()
	f := &fixture{T: t}
	policy, err := egress.NewPolicy(allow, netip.MustParseAddr("10.96.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	f.network = &proxy.Network{
		Direct: (&net.Dialer{}).DialContext, Check: policy.Check,
		Resolver: proxytest.NewResolver(t, func(name string) []netip.Addr { return names[name] }),
	}
	return f
}

func addrs(all ...string) []netip.Addr {
	parsed := make([]netip.Addr, len(all))
	for i, each := range all {
		parsed[i] = netip.MustParseAddr(each)
	}
	return parsed
}

// through returns a dialer for a proxy that a Secret names.
func (f *fixture) through(p *proxytest.Proxy, changes ...string) *proxy.Dialer {
	f.Helper()
	data := p.Data()
	for key, value := range secret(changes...) {
		data[key] = value
	}
	parsed, err := proxy.FromSecret("shop/proxy", data)
	if err != nil {
		f.Fatal(err)
	}
	return f.network.Through(parsed)
}

// environment returns a dialer for a proxy of the environment.
func (f *fixture) environment(p *proxytest.Proxy, noProxy string) *proxy.Dialer {
	f.Helper()
	all := ""
	if strings.HasPrefix(p.URL, "socks5") {
		all = p.URL
	}
	environment, err := proxy.NewEnvironment(&httpproxy.Config{HTTPProxy: p.URL, HTTPSProxy: p.URL, NoProxy: noProxy}, all)
	if err != nil {
		f.Fatal(err)
	}
	f.network.Environment = environment
	return f.network.Through(nil)
}

// target is a server on this host.
type target struct {
	*httptest.Server
	// host is its address.
	host string
}

func newTarget(t *testing.T, scheme string, handler http.HandlerFunc) *target {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if scheme == "https" {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return &target{server, server.Listener.Addr().String()}
}

// get makes a request with a dialer and returns the body.
func (f *fixture) get(ctx context.Context, dialer *proxy.Dialer, address string, server *target) (string, error) {
	f.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}}
	if server != nil && server.TLS != nil {
		transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	}
	client := &http.Client{Transport: dialer.RoundTripper(transport)}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		f.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// connect connects to a URL without a request, for ssh and others.
func (f *fixture) connect(ctx context.Context, dialer *proxy.Dialer, address string) error {
	f.Helper()
	u, err := url.Parse(address)
	if err != nil {
		f.Fatal(err)
	}
	if u.Scheme != "ssh" {
		_, err = f.get(ctx, dialer, address, nil)
		return err
	}
	connection, err := dialer.DialSSH(ctx, "tcp", proxy.AddressOf(u))
	if err == nil {
		err = connection.Close()
	}
	return err
}
