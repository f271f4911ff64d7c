// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

// starters start the kinds of proxies.
var starters = map[string]func(*testing.T, proxytest.Options) *proxytest.Proxy{
	"HTTP": proxytest.NewHTTP, "HTTPS": proxytest.NewHTTPS, "SOCKS5": proxytest.NewSOCKS5,
}

// Requests reach their server through each kind of proxy. Only for https does the proxy receive the name.
func TestRequests(t *testing.T) {
	for kind, start := range starters {
		for scheme, want := range map[string]struct{ host, asked string }{
			"http": {known, publicIP + ":8443"}, "https": {unknown, unknown + ":8443"},
		} {
			t.Run(kind+"/"+scheme, func(t *testing.T) {
				server := newTarget(t, scheme, func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Proxy-Authorization") != "" {
						t.Error("the server receives the credentials of the proxy")
					}
					_, _ = io.WriteString(w, "reached "+r.Host)
				})
				p := start(t, proxytest.Options{Username: "slip", Password: password, Hosts: map[string]string{want.asked: server.host}})
				f := newFixture(t)
				got, err := f.get(t.Context(), f.through(p), scheme+"://"+want.host+":8443/", server)
				if err != nil || got != "reached "+want.host+":8443" {
					t.Errorf("got %q, %v", got, err)
				}
				if asked := p.Targets(); !slices.Equal(asked, []string{want.asked}) {
					t.Errorf("the proxy was asked for %v", asked)
				}
			})
		}
	}
}

// A name with other addresses at each resolution does not lead past the check.
func TestRebinding(t *testing.T) {
	f := newFixture(t)
	var asked atomic.Int32
	f.network.Resolver = proxytest.NewResolver(t, func(string) []netip.Addr {
		if asked.Add(1) > 2 { // One query for each family.
			return addrs("169.254.169.254")
		}
		return addrs(publicIP)
	})
	server := newTarget(t, "http", func(http.ResponseWriter, *http.Request) {})
	for name, scheme := range map[string]string{"HTTP": "http", "SOCKS5": "ssh"} {
		asked.Store(0)
		p := starters[name](t, proxytest.Options{Hosts: map[string]string{publicIP + ":80": server.host, publicIP + ":22": server.host}})
		if err := f.connect(t.Context(), f.through(p), scheme+"://rebinding.example.org"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if asked := p.Targets(); len(asked) != 1 || !strings.HasPrefix(asked[0], publicIP+":") {
			t.Errorf("%s was asked for %v", name, asked)
		}
	}
}

// Errors say what to do, and show neither credentials nor texts of the proxy.
func TestErrors(t *testing.T) {
	respond := func(text string) func(net.Conn) {
		return func(client net.Conn) {
			buffer := make([]byte, 1<<10)
			_, _ = client.Read(buffer)
			_, _ = io.WriteString(client, text)
		}
	}
	wrong := []string{"username", "slip", "password", password + "!"}
	hidden := fmt.Sprintf("HTTP/1.1 500 %s\r\n\r\n", password)
	for name, tt := range map[string]struct {
		kind    string
		options proxytest.Options
		changes []string
		want    string
	}{
		"no credentials":              {"HTTP", proxytest.Options{Username: "slip", Password: password}, []string{"username", "", "password", ""}, "wants credentials (407 Proxy Authentication Required): add username and password"},
		"other credentials":           {"HTTPS", proxytest.Options{Username: "slip", Password: password}, wrong, "refuses the credentials (407 Proxy Authentication Required): check username and password"},
		"no credentials for SOCKS5":   {"SOCKS5", proxytest.Options{Username: "slip", Password: password}, []string{"username", "", "password", ""}, "wants credentials (no acceptable authentication methods): add username and password"},
		"other credentials of SOCKS5": {"SOCKS5", proxytest.Options{Username: "slip", Password: password}, wrong, "refuses the credentials (username/password authentication failed): check username and password"},
		"forbidden":                   {"HTTP", proxytest.Options{Status: 403}, nil, "forbids connections to example.com:443 (403 Forbidden): allow it there"},
		"forbidden by SOCKS5":         {"SOCKS5", proxytest.Options{Reply: 2}, nil, "forbids connections to example.com:443 (connection not allowed by ruleset): allow it there"},
		"unreachable":                 {"HTTP", proxytest.Options{Status: 504}, nil, "cannot connect to example.com:443 (504 Gateway Timeout)"},
		"unreachable by SOCKS5":       {"SOCKS5", proxytest.Options{Reply: 4}, nil, "cannot connect to example.com:443 (host unreachable)"},
		"a web server":                {"HTTP", proxytest.Options{Status: 405}, nil, "does not connect to example.com:443 (405 Method Not Allowed): is it an HTTP proxy, and is its scheme right?"},
		"its own words":               {"HTTP", proxytest.Options{Respond: respond(hidden)}, nil, "cannot connect to example.com:443 (500 Internal Server Error)"},
		"nonsense":                    {"HTTP", proxytest.Options{Respond: respond(password + "\r\n\r\n")}, nil, "does not reply as an HTTP proxy does: is its address right?"},
		"nonsense of SOCKS5":          {"SOCKS5", proxytest.Options{Respond: respond("HTTP/1.1 400\r\n\r\n")}, nil, "does not reply as a SOCKS5 proxy does: is its address right?"},
		"more than a reply":           {"HTTP", proxytest.Options{Respond: respond("HTTP/1.1 200 OK\r\n\r\nSSH-2.0")}, nil, "does not reply as an HTTP proxy does: is its address right?"},
		"an endless reply":            {"HTTP", proxytest.Options{Respond: func(client net.Conn) { trickle(client, "HTTP/1.1 200 OK\r\nX: ") }}, nil, "replies with more than 65536 bytes of headers: is its address right?"},
		"endless headers":             {"HTTP", proxytest.Options{Respond: func(client net.Conn) { trickle(client, "X: y\r\n") }}, nil, "does not reply as an HTTP proxy does"},
		"silent":                      {"HTTP", proxytest.Options{Respond: respond("")}, nil, "closes the connection before it has connected to example.com:443"},
		"silent SOCKS5":               {"SOCKS5", proxytest.Options{Respond: respond("\x05")}, nil, "closes the connection before it has connected to example.com:443"},
		"in plain text":               {"HTTPS", proxytest.Options{}, []string{"ca.crt", ""}, "has a certificate of an authority that is not known: put that authority into caBundle of the Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			p := starters[tt.kind](t, tt.options)
			err := f.connect(t.Context(), f.through(p, tt.changes...), "https://example.com")
			checkError(t, err, fmt.Sprintf("the proxy %s (Secret shop/proxy) %s", p.URL, tt.want))
		})
	}
}

// trickle sends a beginning and then far more than is read.
func trickle(client net.Conn, beginning string) {
	_, err := io.WriteString(client, beginning)
	for sent := 0; err == nil && sent < 8<<20; sent += 1 << 10 {
		_, err = io.WriteString(client, strings.Repeat("x", 1<<10))
	}
}

// checkError expects an Error that begins with a text.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	var ofProxy *proxy.Error
	if !errors.As(err, &ofProxy) {
		t.Fatalf("got %v", err)
	}
	if got := ofProxy.Error(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("%v shows the password", err)
	}
}

// What is wrong with the address of a proxy is described.
func TestUnreachable(t *testing.T) {
	f := newFixture(t)
	closed := proxytest.NewHTTP(t, proxytest.Options{})
	closed.Close()
	plain := proxytest.NewHTTP(t, proxytest.Options{})
	for name, tt := range map[string]struct {
		address, want string
		direct        func(context.Context, string, string) (net.Conn, error)
	}{
		"refused":   {closed.URL, "refuses connections: does it run, and is its port right?", nil},
		"plain":     {strings.Replace(plain.URL, "http", "https", 1), "answers without TLS: its address has to begin with http://, or its port is another one", nil},
		"no name":   {"http://proxy.invalid", "cannot be resolved (no such host): is its host right?", failing(&net.DNSError{Err: "no such host"})},
		"no route":  {"http://proxy.invalid", "cannot be reached: is its address right?", failing(errors.New("no route to host"))},
		"too slow":  {"http://proxy.invalid", "cannot be reached in time: does it run, and is its address right?", failing(context.DeadlineExceeded)},
		"forbidden": {"http://169.254.169.254", "has a refused address: connections to 169.254.169.254 (link-local) are refused; --allow-destinations can allow them", guarded(t)},
	} {
		t.Run(name, func(t *testing.T) {
			network := *f.network
			if tt.direct != nil {
				network.Direct = tt.direct
			}
			p, err := proxy.FromSecret("shop/proxy", secret("address", tt.address))
			if err != nil {
				t.Fatal(err)
			}
			checkError(t, f.connect(t.Context(), network.Through(p), "https://example.com"), fmt.Sprintf("the proxy %s %s", p, tt.want))
		})
	}
}

func failing(err error) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

// A proxy that does not reply is given up with the context.
func TestSlow(t *testing.T) {
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			held := make(chan struct{})
			p := start(t, proxytest.Options{Respond: func(client net.Conn) {
				_, _ = io.Copy(io.Discard, client) // Until the client gives up.
				close(held)
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // Long enough to reach the proxy on a busy machine.
			defer cancel()
			if kind != "SOCKS5" {
				if err := f.connect(ctx, f.through(p), "https://example.com"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			} else {
				checkError(t, f.connect(ctx, f.through(p), "ssh://"+known),
					"the proxy "+p.URL+" (Secret shop/proxy) has not connected to "+publicIP+":22 within 30s: is it overloaded, or "+publicIP+":22 down?")
			}
			select {
			case <-held:
			case <-time.After(testkit.Timeout):
				t.Fatal("the proxy has not been reached, or its connection stays open")
			}
		})
	}
}

// A tunnel that ends in the middle of a response is an error.
func TestCut(t *testing.T) {
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			server := newTarget(t, "http", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			})
			f := newFixture(t, "loopback")
			p := start(t, proxytest.Options{CutAfter: 1 << 12})
			if _, err := f.get(t.Context(), f.through(p), "http://"+server.host, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// SSH needs a SOCKS5 proxy.
func TestSSHThroughHTTP(t *testing.T) {
	f := newFixture(t)
	p := proxytest.NewHTTP(t, proxytest.Options{})
	checkError(t, f.connect(t.Context(), f.through(p), "ssh://"+known), "the proxy "+p.URL+" (Secret shop/proxy) cannot be used for SSH: a SOCKS5 proxy can")
	if asked := p.Targets(); len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
