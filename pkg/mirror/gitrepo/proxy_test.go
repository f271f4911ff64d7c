// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

const proxyPassword = "hush-hush"

var withPassword = proxytest.Options{Username: "slip", Password: proxyPassword}

// through has a remote use a proxy. Addresses of this host are allowed.
func through(t *testing.T, remote *gitrepo.Remote, p *proxytest.Proxy) *gitrepo.Remote {
	t.Helper()
	policy, err := egress.NewPolicy([]string{egress.Loopback})
	if err != nil {
		t.Fatal(err)
	}
	remote.Network = proxy.NewNetwork(policy, nil)
	if remote.Proxy, err = proxy.FromSecret("shop/proxy", p.Data()); err != nil {
		t.Fatal(err)
	}
	return remote
}

// remoteOverSSH returns a remote over SSH and its server.
func remoteOverSSH(t *testing.T, r repository) (*gitrepo.Remote, *sshServer) {
	t.Helper()
	key, public := clientKey(t, "")
	server := newSSHServer(t, public)
	remote := newRemote(t, server.url(r.path))
	remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
	return remote, server
}

// Branches are read and pushed through each kind of proxy that can forward them.
func TestProxies(t *testing.T) {
	overHTTP := func(t *testing.T, r repository) *gitrepo.Remote { return newRemote(t, r.serve(plain)) }
	overSSH := func(t *testing.T, r repository) *gitrepo.Remote {
		remote, _ := remoteOverSSH(t, r)
		return remote
	}
	for name, tt := range map[string]struct {
		start  func(*testing.T, proxytest.Options) *proxytest.Proxy
		remote func(*testing.T, repository) *gitrepo.Remote
	}{
		"HTTP": {proxytest.NewHTTP, overHTTP}, "HTTPS": {proxytest.NewHTTPS, overHTTP}, "SOCKS5": {proxytest.NewSOCKS5, overHTTP},
		"SSH over SOCKS5": {proxytest.NewSOCKS5, overSSH},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			p := tt.start(t, withPassword)
			remote := through(t, tt.remote(t, r), p)
			if err := remote.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			branch := load(t, remote, gitrepo.Options{})
			stage(t, branch, set("a", "a"), set("large", noise(1<<20)))
			push(t, branch)
			r.clone().git("log")
			refreshed(t, r, branch)
			if len(p.Targets()) == 0 {
				t.Error("the proxy was not used")
			}
			remote.Close()
		})
	}
}

// Failures of proxies count as those of an unreachable remote. Their messages say what to do and do not show credentials.
func TestFailuresOfProxies(t *testing.T) {
	r := newRepository(t)
	r.clone().first("a", noise(1<<20))
	for name, tt := range map[string]struct {
		start   func(*testing.T, proxytest.Options) *proxytest.Proxy
		options proxytest.Options
		want    string
	}{
		"forbidden":         {proxytest.NewHTTP, proxytest.Options{Status: http.StatusForbidden}, "the proxy PROXY forbids connections to HOST (403 Forbidden): allow it there"},
		"forbidden for SSH": {proxytest.NewSOCKS5, proxytest.Options{Reply: 2}, "connect to HOST: the proxy PROXY forbids connections to HOST (connection not allowed by ruleset): allow it there"},
		"ends within the response": {
			proxytest.NewHTTP, proxytest.Options{Username: "slip", Password: proxyPassword, CutAfter: 100},
			"unexpected EOF; through the proxy PROXY",
		},
		"ends within the SSH handshake": {proxytest.NewSOCKS5, proxytest.Options{CutAfter: 100}, "; through the proxy PROXY"},
		"an HTTP proxy for SSH": {
			proxytest.NewHTTP, proxytest.Options{},
			"connect to HOST: the proxy PROXY cannot be used for SSH: a SOCKS5 proxy can, with an address that begins with socks5://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tt.start(t, tt.options)
			var remote *gitrepo.Remote
			var host string
			if strings.Contains(name, "SSH") {
				var server *sshServer
				remote, server = remoteOverSSH(t, r)
				host = server.address()
			} else {
				remote = newRemote(t, r.serve(plain))
				host, _, _ = strings.Cut(strings.TrimPrefix(remote.URL, "http://"), "/")
			}
			err := through(t, remote, p).Check(t.Context())
			hasKind(t, err, gitrepo.Unreachable)
			want := strings.NewReplacer("PROXY", p.URL+" (Secret shop/proxy)", "HOST", host).Replace(tt.want)
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), proxyPassword) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// The credentials of the proxy are removed from what a server without TLS says, because the proxy can put them there.
func TestScrubbedCredentialsOfAProxy(t *testing.T) {
	r := newRepository(t)
	remote := newRemote(t, r.serve(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "slip:"+proxyPassword, http.StatusForbidden)
		})
	}))
	err := through(t, remote, proxytest.NewHTTP(t, withPassword)).Check(t.Context())
	if err == nil || strings.Contains(err.Error(), proxyPassword) || !strings.Contains(err.Error(), "slip:[REDACTED]") {
		t.Errorf("got %v", err)
	}
}

// Addresses that are refused directly are refused through a proxy.
func TestRefusedAddressBehindAProxy(t *testing.T) {
	p := proxytest.NewSOCKS5(t, proxytest.Options{})
	for _, url := range []string{"https://169.254.169.254/a.git", "http://169.254.169.254/a.git", "ssh://git@169.254.169.254/a.git", "ssh://git@[::ffff:169.254.169.254]/a.git"} {
		remote := newRemote(t, url)
		remote.Credentials.KnownHosts = []byte("* " + hostKeyLine)
		err := through(t, remote, p).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "connections to 169.254.169.254 (link-local) are refused") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if asked := p.Targets(); len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
