// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// hostedName is the name of the hosted page, which the browser resolves to this machine.
const hostedName = "slipstream.test"

// hosted is a page for all users, behind a proxy that knows them by a cookie, and adds their tokens to their requests.
type hosted struct {
	cluster *testCluster
	// origin is the address of the page in the browser.
	origin string
	folder string
	proxy  *httptest.Server
	stop   func()

	mu sync.Mutex
	// address is that of the page behind the proxy.
	address string
	// tokens are those of the users who are logged in at the proxy.
	tokens map[string]string
}

// startHosted starts the page and its proxy, until the test ends. The users are ServiceAccounts, which have tokens.
func startHosted(t *testing.T, s *testCluster) *hosted {
	t.Helper()
	h := &hosted{cluster: s, folder: t.TempDir(), tokens: map[string]string{}}
	s.Apply(t, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: jane, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: tim, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hosted-jane}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipstream-admin}
subjects: [{kind: ServiceAccount, name: jane, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: hosted-tim, namespace: `+team+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipstream-view}
subjects: [{kind: ServiceAccount, name: tim, namespace: default}]
`)
	authority, err := pki.NewAuthority("page")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("page", hostedName)
	if err == nil {
		err = pair.Write(h.folder, "page")
	}
	if err != nil {
		t.Fatal(err)
	}
	h.proxy = httptest.NewTLSServer(h)
	t.Cleanup(h.proxy.Close)
	h.origin = "https://" + net.JoinHostPort(hostedName, h.proxy.URL[strings.LastIndexByte(h.proxy.URL, ':')+1:])
	h.start(t)
	t.Cleanup(func() { h.stop() })
	return h
}

// start starts the page. It has the kubeconfig of a user without permissions, whose credentials it must not use.
func (h *hosted) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := clustertest.Plugin(t, h.cluster.person(t, nora).Kubectl.User).Command(
		ctx, "dashboard", "serve", "--url="+h.origin, "--listen=127.0.0.1:0",
		"--tls-cert-file="+filepath.Join(h.folder, "page.crt"), "--tls-private-key-file="+filepath.Join(h.folder, "page.key"),
	)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.stop = func() {
		cancel()
		_ = command.Wait() // It was killed.
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), " on ")
	if !found {
		t.Fatalf("printed %q: %v", line, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.address = address
}

// login logs a user in at the proxy, or renews the token of one who is.
func (h *hosted) login(t *testing.T, user string) {
	t.Helper()
	token, err := h.cluster.Administrator.Run(t.Context(), "create", "token", user, "--namespace=default")
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens[user] = strings.TrimSpace(token)
}

// logout has the proxy forget a user.
func (h *hosted) logout(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tokens, user)
}

// ServeHTTP is the proxy. Who is not logged in is sent to another site, as by one that uses OpenID Connect.
func (h *hosted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie("user")
	h.mu.Lock()
	address, token := h.address, ""
	if err == nil {
		token = h.tokens[cookie.Value]
	}
	h.mu.Unlock()
	if token == "" {
		http.Redirect(w, r, "https://login."+hostedName+"/", http.StatusFound)
		return
	}
	(&httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: address})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}).ServeHTTP(w, r)
}

// hostedStep does what a scenario asks for.
func (s *testCluster) hostedStep(t *testing.T, action, user string) (any, error) {
	t.Helper()
	if s.hosted == nil {
		s.hosted = startHosted(s.root, s)
	}
	switch action {
	case "login":
		s.hosted.login(t, user)
	case "logout":
		s.hosted.logout(user)
	case "restart":
		s.hosted.stop()
		s.hosted.start(s.root)
	default:
		return nil, fmt.Errorf("unknown action %s", action)
	}
	return s.hosted.origin, nil
}
