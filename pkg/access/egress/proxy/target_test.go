// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

// guarded returns the dialer of the server's policy.
func guarded(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	policy, err := egress.NewPolicy(nil)
	if err != nil {
		t.Fatal(err)
	}
	return policy.DialContext
}

// Addresses that are refused directly are refused behind each proxy, in each form, for each scheme: the proxy is not asked.
func TestRefusedTargets(t *testing.T) {
	hosts := []string{
		"169.254.169.254", "127.0.0.1", "127.8.8.8", "10.96.0.1", "0.0.0.0", "100.100.100.200", "[::1]", "[::]", "[::ffff:169.254.169.254]",
		"[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]",
		"localhost", "LOCALHOST", "localhost.", "metadata.localhost",
		// Only some programs take these for addresses.
		"127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "169.254.43518", "127.0.0.1.", "127.0.0.0x1", "999.0.0.1",
	}
	f := newFixture(t)
	for name := range names {
		if name != known {
			hosts = append(hosts, name)
		}
	}
	f.network.Direct = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "127.0.0.1:") { // Where the proxies of this test are.
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return nil, fmt.Errorf("connected to %s", address)
	}
	for kind, start := range starters {
		p := start(t, proxytest.Options{Status: http.StatusForbidden, Reply: 2}) // so that a defect reaches nothing
		for from, dialer := range map[string]*proxy.Dialer{"Secret": f.through(p), "environment": f.environment(p, "")} {
			for _, scheme := range []string{"http", "https", "ssh"} {
				for _, host := range hosts {
					if from == "environment" && (kind != "SOCKS5" && scheme == "ssh" || isDirect(dialer, scheme, host)) {
						continue // It is not proxied. TestDirect shows what happens then.
					}
					err := f.connect(t.Context(), dialer, scheme+"://"+host)
					var refused *egress.RefusedError
					isOther := err != nil && strings.Contains(err.Error(), "is neither a name nor an address in its usual form")
					if !errors.As(err, &refused) && !isOther {
						t.Errorf("%s of %s: %s://%s: %v", kind, from, scheme, host, err)
					}
				}
			}
		}
		if asked := p.Targets(); len(asked) > 0 {
			t.Errorf("%s was asked for %v", kind, asked)
		}
	}
}

// isDirect reports whether the environment has no proxy for a host.
func isDirect(dialer *proxy.Dialer, scheme, host string) bool {
	return dialer.Proxy(scheme, strings.Replace(host, "%25", "%", 1)+":1") == nil
}

// What the environment does not proxy (this host, and NO_PROXY) is dialed with the policy.
func TestDirect(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "169.254.169.254", "[::ffff:169.254.169.254]"} {
		f := newFixture(t)
		f.network.Direct = guarded(t)
		p := proxytest.NewSOCKS5(t, proxytest.Options{})
		for _, scheme := range []string{"http", "https", "ssh"} {
			var refused *egress.RefusedError
			err := f.connect(t.Context(), f.environment(p, "169.254.0.0/16,::ffff:169.254.169.254"), scheme+"://"+host+":1")
			if !errors.As(err, &refused) {
				t.Errorf("%s://%s: %v", scheme, host, err)
			}
		}
		if asked := p.Targets(); len(asked) > 0 {
			t.Errorf("the proxy was asked for %v", asked)
		}
	}
}

// A proxy of the environment may be where users must not connect to. One that a user names may not, and --allow-destinations allows it.
func TestAddressOfTheProxy(t *testing.T) {
	server := newTarget(t, "https", func(http.ResponseWriter, *http.Request) {})
	f := newFixture(t, "loopback")
	f.network.Direct = guarded(t)
	p := proxytest.NewHTTP(t, proxytest.Options{Hosts: map[string]string{unknown + ":443": server.host}})
	if _, err := f.get(t.Context(), f.environment(p, ""), "https://"+unknown, server); err != nil {
		t.Errorf("of the environment: %v", err)
	}
	checkError(t, f.connect(t.Context(), f.through(p), "https://"+unknown),
		"the proxy "+p.URL+" (Secret shop/proxy) has a refused address: connections to 127.0.0.1 (loopback) are refused")
}

// A name that cannot be resolved here reaches the proxy for https only.
func TestUnresolvedTargets(t *testing.T) {
	f := newFixture(t)
	p := proxytest.NewSOCKS5(t, proxytest.Options{Reply: 2})
	for _, scheme := range []string{"http", "ssh"} {
		var unresolved *proxy.UnresolvedError
		err := f.connect(t.Context(), f.through(p), scheme+"://"+unknown)
		if !errors.As(err, &unresolved) || unresolved.Error() != unknown+" cannot be resolved here, "+
			"and only https works through a proxy without that: use https, or an address" {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	checkError(t, f.connect(t.Context(), f.through(p), "https://"+unknown), "the proxy "+p.URL+" (Secret shop/proxy) forbids connections")
}

// Without a policy, nothing is connected to through a proxy.
func TestNoPolicy(t *testing.T) {
	f := newFixture(t)
	f.network.Check = nil
	p := proxytest.NewHTTP(t, proxytest.Options{})
	if err := f.connect(t.Context(), f.through(p), "https://"+unknown); err == nil || len(p.Targets()) > 0 {
		t.Errorf("%v, the proxy was asked for %v", err, p.Targets())
	}
}
