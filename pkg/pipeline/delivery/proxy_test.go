// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

const proxyPassword = "hush-hush"

var withPassword = proxytest.Options{Username: "slip", Password: proxyPassword}

// proxyStarters start the kinds of proxies.
var proxyStarters = map[string]func(*testing.T, proxytest.Options) *proxytest.Proxy{
	"HTTP": proxytest.NewHTTP, "HTTPS": proxytest.NewHTTPS, "SOCKS5": proxytest.NewSOCKS5,
}

// proxySecret creates or updates the Secret with the proxy of the sink.
func (s *fixture) proxySecret(data map[string][]byte) {
	s.Helper()
	s.spec.ProxySecretRef = &v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "proxy"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "proxy"}, Data: data}
	secrets := s.cluster.CoreV1().Secrets("ops")
	if _, err := secrets.Update(s.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(s.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// named starts a receiver that has the name example.com and no address that the server could resolve.
func (s *fixture) named(handler http.HandlerFunc) *httptest.Server {
	s.Helper()
	server := s.secure(handler)
	s.resolver = proxytest.NewResolver(s.T, func(string) []netip.Addr { return nil })
	s.spec.URL, s.spec.CABundle = "https://example.com", bundle(server)
	return server
}

// known returns options of a proxy that knows the receiver.
func known(options proxytest.Options, server *httptest.Server) proxytest.Options {
	options.Hosts = map[string]string{"example.com:443": server.Listener.Addr().String()}
	return options
}

func TestProxyOfASecret(t *testing.T) {
	for kind, start := range proxyStarters {
		t.Run(kind, func(t *testing.T) {
			s := newFixture(t)
			s.secret(map[string]string{"token": "of-the-receiver"})
			server := s.named(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("Authorization") != "Bearer of-the-receiver" {
					t.Errorf("headers = %v", r.Header)
				}
			})
			p := start(t, known(withPassword, server))
			s.proxySecret(p.Data())
			sink := s.sink()
			for range 2 {
				if got := s.deliver(sink); got.Outcome != format.Delivered {
					t.Errorf("got %+v", got)
				}
			}
			if asked := p.Targets(); !slices.Equal(asked, []string{"example.com:443"}) {
				t.Errorf("the proxy was asked for %v, want one connection for both batches", asked)
			}
		})
	}
}

// The proxies of the environment are used unless a Secret names one.
func TestProxyOfTheEnvironment(t *testing.T) {
	s := newFixture(t)
	server := s.named(func(http.ResponseWriter, *http.Request) {})
	theirs, mine := proxytest.NewHTTP(t, known(withPassword, server)), proxytest.NewHTTP(t, known(withPassword, server))
	var err error
	address := strings.Replace(theirs.URL, "://", "://slip:"+proxyPassword+"@", 1)
	if s.environment, err = proxy.NewEnvironment(&httpproxy.Config{HTTPSProxy: address}, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.deliver(s.sink()); got.Outcome != format.Delivered || len(theirs.Targets()) != 1 {
		t.Errorf("got %+v, the proxy was asked for %v", got, theirs.Targets())
	}
	s.proxySecret(mine.Data())
	if got := s.deliver(s.sink()); got.Outcome != format.Delivered || len(mine.Targets()) != 1 || len(theirs.Targets()) != 1 {
		t.Errorf("got %+v, the proxies were asked for %v and %v", got, mine.Targets(), theirs.Targets())
	}
}

// A changed Secret counts for the next batch, also where a connection is open.
func TestRotatedProxy(t *testing.T) {
	s := newFixture(t)
	server := s.named(func(http.ResponseWriter, *http.Request) {})
	before, after := proxytest.NewHTTP(t, known(withPassword, server)), proxytest.NewSOCKS5(t, known(proxytest.Options{}, server))
	s.proxySecret(before.Data())
	receiver := s.sink()
	for _, next := range []*proxytest.Proxy{before, after} {
		s.proxySecret(next.Data())
		if got := s.deliver(receiver); got.Outcome != format.Delivered || len(next.Targets()) != 1 {
			t.Errorf("got %+v, %s was asked for %v", got, next.URL, next.Targets())
		}
	}
	wrong := before.Data()
	wrong["password"] = []byte(proxyPassword + "!")
	s.proxySecret(wrong)
	got := s.deliver(receiver)
	if want := "the proxy " + before.URL + " (Secret ops/proxy) refuses the credentials (407 Proxy Authentication Required): " +
		"check username and password"; got.Outcome != format.Retry || got.Message != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// Failures on the way are explained, and retried. No message has the credentials.
func TestFailuresOfProxies(t *testing.T) {
	for name, tt := range map[string]struct {
		options proxytest.Options
		arrange func(s *fixture, p *proxytest.Proxy, server *httptest.Server)
		want    string
	}{
		"no Secret": {withPassword, func(s *fixture, _ *proxytest.Proxy, _ *httptest.Server) {
			s.spec.ProxySecretRef.Name = "none"
		}, "there is no Secret ops/none, which proxySecretRef names; create it"},
		"no address": {withPassword, func(s *fixture, _ *proxytest.Proxy, _ *httptest.Server) {
			s.proxySecret(map[string][]byte{"username": []byte("slip")})
		}, "the Secret ops/proxy has no usable proxy: it has no key address; add it: http://, https:// or socks5:// and a host, " +
			"with a port unless it is 80, 443 or 1080, such as http://proxy.example.com:3128"},
		"not running": {withPassword, func(_ *fixture, p *proxytest.Proxy, _ *httptest.Server) {
			p.Close()
		}, "the proxy PROXY (Secret ops/proxy) refuses connections: does it run, and is its port right?"},
		"forbidden": {proxytest.Options{Status: http.StatusForbidden}, nil,
			"the proxy PROXY (Secret ops/proxy) forbids connections to example.com:443 (403 Forbidden): allow it there"},
		"the receiver is down": {withPassword, func(_ *fixture, _ *proxytest.Proxy, server *httptest.Server) {
			server.Close()
		}, "the proxy PROXY (Secret ops/proxy) cannot connect to example.com:443 (502 Bad Gateway)"},
		"ends within the handshake": {proxytest.Options{CutAfter: 10}, nil, "the call to HOST failed: unexpected EOF; through the proxy PROXY (Secret ops/proxy)"},
		"another authority": {withPassword, func(s *fixture, _ *proxytest.Proxy, _ *httptest.Server) {
			s.spec.CABundle = nil
		}, "the certificate of HOST is signed by an authority that is not known: put that authority into caBundle; through the proxy PROXY (Secret ops/proxy)"},
		"a receiver that hangs": {withPassword, func(s *fixture, _ *proxytest.Proxy, server *httptest.Server) {
			server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				<-r.Context().Done()
			})
			s.spec.Timeout = &metav1.Duration{Duration: 200 * time.Millisecond}
		}, "HOST has not answered within 200ms; a longer timeout may help; through the proxy PROXY (Secret ops/proxy)"},
		"metadata": {withPassword, func(s *fixture, _ *proxytest.Proxy, _ *httptest.Server) {
			s.spec.URL, s.spec.CABundle = "http://169.254.169.254", nil
		}, "connections to 169.254.169.254 (link-local) are refused; --allow-destinations can allow them; through the proxy PROXY (Secret ops/proxy)"},
		"a name that is not known": {withPassword, func(s *fixture, _ *proxytest.Proxy, _ *httptest.Server) {
			s.spec.URL, s.spec.CABundle = "http://example.com", nil
		}, "example.com cannot be resolved here, and only https works through a proxy without that: use https, or an address; " +
			"through the proxy PROXY (Secret ops/proxy)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			server := s.named(func(http.ResponseWriter, *http.Request) {})
			p := proxytest.NewHTTP(t, known(tt.options, server))
			s.proxySecret(p.Data())
			if tt.arrange != nil {
				tt.arrange(s, p, server)
			}
			_, host, _ := strings.Cut(s.spec.URL, "://")
			want := strings.NewReplacer("HOST", host, "PROXY", p.URL).Replace(tt.want)
			got := s.deliver(s.sink())
			if got.Outcome != format.Retry || got.Message != want {
				t.Errorf("got  %+v\nwant %q", got, want)
			}
			if strings.Contains(got.Message, proxyPassword) {
				t.Errorf("%q shows the password", got.Message)
			}
		})
	}
}

// What a receiver without TLS repeats of the credentials of the proxy, because the proxy has put it there, is not shown.
func TestQuotedCredentialsOfAProxy(t *testing.T) {
	s := newFixture(t)
	s.receiver(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "slip:"+proxyPassword)
	})
	p := proxytest.NewHTTP(t, withPassword)
	s.proxySecret(p.Data())
	if got := s.deliver(s.sink()); strings.Contains(got.Message, proxyPassword) || !strings.Contains(got.Message, "[REDACTED]") {
		t.Errorf("got %+v", got)
	}
}

// A proxy at a refused address is refused.
func TestRefusedProxy(t *testing.T) {
	s := newFixture(t)
	server := s.named(func(http.ResponseWriter, *http.Request) {})
	p := proxytest.NewHTTP(t, known(proxytest.Options{}, server))
	s.proxySecret(p.Data())
	s.dial = (&egress.Policy{}).DialContext
	if got := s.deliver(s.sink()); !strings.Contains(got.Message, "has a refused address: connections to 127.0.0.1 (loopback) are refused") {
		t.Errorf("got %+v", got)
	}
	if asked := p.Targets(); len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
