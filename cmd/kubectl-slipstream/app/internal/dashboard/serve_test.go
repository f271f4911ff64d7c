// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// users is a cluster that knows its users by their tokens, and whom a ServiceAccount may impersonate.
type users struct {
	*cluster
	URL         string
	certificate *x509.Certificate

	mu sync.Mutex
	// names are those of the users by token.
	names map[string]string
	// seen are the users and the groups for whom something was requested, with the token or as impersonated.
	seen []string
}

func newUsers(t *testing.T) *users {
	t.Helper()
	u := &users{cluster: newCluster(t), names: map[string]string{"of-jane": "jane", "later-of-jane": "jane", "of-john": "john", "of-page": "page"}}
	server := httptest.NewTLSServer(u) // A token is not sent without TLS.
	u.URL, u.certificate = server.URL, server.Certificate()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return u
}

func (u *users) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	name, isKnown := u.names[token]
	as := token
	if impersonated := r.Header.Get("Impersonate-User"); impersonated != "" {
		name, as = impersonated, impersonated+" "+strings.Join(r.Header.Values("Impersonate-Group"), ",")+" by "+token
	}
	u.seen = append(u.seen, as)
	u.mu.Unlock()
	switch {
	case !isKnown:
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		w.Header().Set("Content-Type", "application/json")
		reply(w, map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": name}},
		})
	default:
		u.cluster.ServeHTTP(w, r)
	}
}

// requestedAs returns for whom something was requested since the last call.
func (u *users) requestedAs() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := slices.Compact(slices.Sorted(slices.Values(u.seen)))
	u.seen = nil
	return seen
}

func (u *users) forget(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.names, token)
}

const hostedOrigin = "https://slipstream.example.com"

// proxy is what a browser sees of a hosted page: the headers that a proxy adds, and its certificate.
type proxy struct {
	page
	header http.Header
}

// host runs dashboard serve, and returns a proxy without headers. The certificates of clients are of an authority that is in folder.
func host(t *testing.T, of *users, folder string, args ...string) *proxy {
	t.Helper()
	authority := newAuthority(t, folder, "page")
	pair, err := authority.Server("page", "slipstream.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(folder, "serving"); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.certificate.Raw})
	if err := os.WriteFile(filepath.Join(folder, "cluster.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: poolOf(t, filepath.Join(folder, "page.crt")), MinVersion: tls.VersionTLS13}}
	line := launch(t, transport, append([]string{
		"dashboard", "serve", "--url", hostedOrigin, "--listen", "127.0.0.1:0", "--server", of.URL, "--kubeconfig", os.DevNull, "--token", "of-page",
		"--certificate-authority", filepath.Join(folder, "cluster.crt"),
		"--tls-cert-file", filepath.Join(folder, "serving.crt"), "--tls-private-key-file", filepath.Join(folder, "serving.key"),
	}, args...)...)
	_, address, found := strings.Cut(line, "Serving "+hostedOrigin+" on ")
	if !found {
		t.Fatalf("printed %q", line)
	}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return &proxy{page: page{client: &http.Client{Transport: transport}, origin: hostedOrigin}, header: http.Header{}}
}

func newAuthority(t *testing.T, folder, name string) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(folder, name); err != nil {
		t.Fatal(err)
	}
	return authority
}

func poolOf(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(content)
	return pool
}

// with returns a proxy with other headers, in pairs of a name and a value.
func (p *proxy) with(pairs ...string) *proxy {
	other := *p
	other.header = http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		other.header.Add(pairs[i], pairs[i+1])
	}
	return &other
}

// as returns a proxy that adds the token of a user.
func (p *proxy) as(token string) *proxy { return p.with("Authorization", "Bearer "+token) }

// call calls the API, and returns the status and the body.
func (p *proxy) call(t *testing.T, path, body string) (int, string) {
	t.Helper()
	r := p.request(t.Context(), t, path, body)
	maps.Copy(r.Header, p.header)
	received := p.do(t, r)
	return received.status, received.body
}

// login opens a session.
func (p *proxy) login(t *testing.T) {
	t.Helper()
	status, body := p.call(t, "/api/session", "{}")
	var opened struct{ Session string }
	if err := json.Unmarshal([]byte(body), &opened); err != nil || status != http.StatusOK || len(opened.Session) != 64 {
		t.Fatalf("status %d: %s", status, body)
	}
	p.session = opened.Session
}

const listEnvironments = `{"resource":"environments"}`

// check checks the status of a call, and a part of its response.
func (p *proxy) check(t *testing.T, status int, text string) {
	t.Helper()
	if got, body := p.call(t, "/api/list", listEnvironments); got != status || !strings.Contains(body, text) {
		t.Errorf("status %d, want %d with %q: %s", got, status, text, body)
	}
}

// TestTokens checks that all that a session requests is with the token of the user who opened it, and that no other user can use it.
func TestTokens(t *testing.T) {
	u := newUsers(t)
	p := host(t, u, t.TempDir())
	for name, other := range map[string]*proxy{
		"no token": p, "a wrong token": p.as("wrong"), "a password": p.with("Authorization", "Basic of-jane"),
		"two tokens": p.with("Authorization", "Bearer of-jane", "Authorization", "Bearer of-john"),
	} {
		if status, body := other.call(t, "/api/session", "{}"); status != http.StatusUnauthorized || !strings.Contains(body, `"ask":"login"`) {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
	u.requestedAs()
	jane, john := p.as("of-jane"), p.as("of-john")
	jane.login(t)
	jane.check(t, http.StatusOK, "rows")
	if got := u.requestedAs(); !slices.Equal(got, []string{"of-jane"}) {
		t.Errorf("requested with the tokens %q", got)
	}
	p.session = jane.session
	p.check(t, http.StatusUnauthorized, "no token")
	u.requestedAs()
	later := p.as("later-of-jane")
	later.session = jane.session
	for range 2 {
		later.check(t, http.StatusOK, "rows")
	}
	if got := u.requestedAs(); !slices.Equal(got, []string{"later-of-jane"}) {
		t.Errorf("requested with the tokens %q after a renewal", got)
	}
	john.session = jane.session
	john.check(t, http.StatusUnauthorized, `"ask":"reload"`)
	later.check(t, http.StatusUnauthorized, `"ask":"login"`) // The browser has another user now.
}

// TestExpiredToken ends the session of a user whose token the API server no longer accepts.
func TestExpiredToken(t *testing.T) {
	u := newUsers(t)
	jane := host(t, u, t.TempDir()).as("of-jane")
	jane.login(t)
	u.forget("of-jane")
	for range 2 {
		jane.check(t, http.StatusUnauthorized, `"ask":"login"`)
	}
	if status, body := jane.call(t, "/api/session", "{}"); status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestExpiredStream ends the stream of a user whose token the API server no longer accepts.
func TestExpiredStream(t *testing.T) {
	u := newUsers(t)
	jane := host(t, u, t.TempDir()).as("of-jane")
	jane.login(t)
	r := jane.request(t.Context(), t, "/api/stream", "{}")
	maps.Copy(r.Header, jane.header)
	u.forget("of-jane")
	if received := jane.do(t, r); !strings.Contains(received.body, `"type":"hello","user":"jane","context":"slipstream.example.com"`) {
		t.Errorf("streamed %s", received.body)
	}
	jane.check(t, http.StatusUnauthorized, `"ask":"login"`)
}

// TestChosenNamespace asks users who may not list all namespaces which one they want to see.
func TestChosenNamespace(t *testing.T) {
	u := newUsers(t)
	u.refused = []string{"environments"}
	jane := host(t, u, t.TempDir()).as("of-jane")
	if status, body := jane.call(t, "/api/session", "{}"); status != http.StatusForbidden || !strings.Contains(body, `"ask":"namespace"`) {
		t.Errorf("status %d: %s", status, body)
	}
	if status, body := jane.call(t, "/api/session", `{"namespace":"../teams"}`); status != http.StatusBadRequest {
		t.Errorf("status %d: %s", status, body)
	}
	if status, body := jane.call(t, "/api/session", `{"namespace":"teams"}`); status != http.StatusOK {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestHostedGuard checks that a hosted page has the rules of the other one, with its own address.
func TestHostedGuard(t *testing.T) {
	jane := host(t, newUsers(t), t.TempDir()).as("of-jane")
	jane.login(t)
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"as the page":    {func(*http.Request) {}, http.StatusOK},
		"another host":   {func(r *http.Request) { r.Host = "10.0.0.1:8443" }, http.StatusMisdirectedRequest},
		"another origin": {func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, http.StatusForbidden},
		"http":           {func(r *http.Request) { r.Header.Set("Origin", "http://slipstream.example.com") }, http.StatusForbidden},
		"another site":   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"no session":     {func(r *http.Request) { r.Header.Del("X-Slipstream-Session") }, http.StatusUnauthorized},
		"a form":         {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"a link": {func(r *http.Request) {
			r.URL.Path, r.Body, r.ContentLength = "/api/session", io.NopCloser(strings.NewReader(`{"code":"x"}`)), -1
		}, http.StatusBadRequest},
		"a probe": {func(r *http.Request) { r.Method, r.Host, r.URL.Path = http.MethodGet, "10.0.0.1:8443", "/healthz" }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			r := jane.request(t.Context(), t, "/api/list", listEnvironments)
			maps.Copy(r.Header, jane.header)
			test.change(r)
			got := jane.do(t, r)
			if got.status != test.status {
				t.Errorf("status %d, want %d: %s", got.status, test.status, got.body)
			}
			checkHeaders(t, got.header)
		})
	}
}

// TestHostedSwitch checks that changes are allowed in one session, not in those of others, and that a command has the token of its user.
func TestHostedSwitch(t *testing.T) {
	u := newUsers(t)
	u.objects["namespaces/teams/environments/alice"] = environment(map[string]any{"pinnedRevision": 3}, nil)
	p := host(t, u, t.TempDir())
	jane, john := p.as("of-jane"), p.as("of-john")
	jane.login(t)
	john.login(t)
	if status, body := jane.call(t, "/api/allow", `{"allow":true}`); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	const unpin = `{"action":"unpin",` + alice + `}`
	if status, body := john.call(t, "/api/run", unpin); status != http.StatusForbidden {
		t.Errorf("status %d: %s", status, body)
	}
	u.requestedAs()
	status, body := jane.call(t, "/api/run", unpin)
	if want := `{"command":"kubectl slipstream unpin alice -n teams"}`; status != http.StatusOK || !strings.HasPrefix(body, want) || !strings.Contains(body, `"exit":0`) {
		t.Errorf("status %d: %s", status, body)
	}
	if got := u.requestedAs(); !slices.Equal(got, []string{"of-jane"}) {
		t.Errorf("requested with the tokens %q", got)
	}
}

// TestTokenOfProxy accepts tokens only from a client with a certificate, if there is an authority.
func TestTokenOfProxy(t *testing.T) {
	u, folder := newUsers(t), t.TempDir()
	authority := newAuthority(t, folder, "proxies")
	jane := host(t, u, folder, "--requestheader-client-ca-file", filepath.Join(folder, "proxies.crt")).as("of-jane")
	if status, body := jane.call(t, "/api/session", "{}"); status != http.StatusForbidden || !strings.Contains(body, "does not come from the proxy") {
		t.Errorf("status %d: %s", status, body)
	}
	jane.certified(t, func() (pki.Pair, error) { return authority.Client("any") }).login(t)
}

// TestFrontProxy checks that only a proxy with a certificate can name users, and none of Kubernetes itself.
func TestFrontProxy(t *testing.T) {
	u, folder := newUsers(t), t.TempDir()
	authority, foreign := newAuthority(t, folder, "proxies"), newAuthority(t, folder, "others")
	p := host(t, u, folder, "--authentication=FrontProxy", "--requestheader-client-ca-file", filepath.Join(folder, "proxies.crt"),
		"--requestheader-allowed-names=front-proxy", "--impersonated-groups=team-a,team-b")
	jane := p.with("X-Remote-User", "jane", "X-Remote-Group", "team-a", "X-Remote-Group", "system:authenticated", "X-Remote-Group", "staff")
	for name, certificate := range map[string]func() (pki.Pair, error){
		"no certificate":    nil,
		"another authority": func() (pki.Pair, error) { return foreign.Client("front-proxy") },
		"another name":      func() (pki.Pair, error) { return authority.Client("other") },
	} {
		if status, body := jane.certified(t, certificate).call(t, "/api/session", "{}"); status != http.StatusForbidden || !strings.Contains(body, "does not come from the proxy") {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
	own := func() (pki.Pair, error) { return authority.Client("front-proxy") }
	for name, test := range map[string]struct {
		of     *proxy
		status int
	}{
		"no user":         {p.with(), http.StatusUnauthorized},
		"a system user":   {p.with("X-Remote-User", "system:serviceaccount:slipstream:page"), http.StatusForbidden},
		"two users":       {p.with("X-Remote-User", "jane", "X-Remote-User", "john"), http.StatusForbidden},
		"not in UTF-8":    {p.with("X-Remote-User", "ren\xe9"), http.StatusForbidden},
		"a token instead": {p.as("of-jane"), http.StatusUnauthorized},
	} {
		if status, body := test.of.certified(t, own).call(t, "/api/session", "{}"); status != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	if got := u.requestedAs(); len(got) > 0 {
		t.Errorf("requested as %q before there is a user", got)
	}
	jane = jane.certified(t, own)
	jane.login(t)
	jane.check(t, http.StatusOK, "rows")
	if got := u.requestedAs(); !slices.Equal(got, []string{"jane team-a by of-page"}) {
		t.Errorf("requested as %q", got)
	}
	jane.header.Add("X-Remote-Group", "team-b")
	jane.check(t, http.StatusUnauthorized, "your groups have changed")
}

// TestSystemGroups refuses groups of Kubernetes itself, also those that are one only without the spaces around them: HTTP/2 keeps these, and
// a further hop may not.
func TestSystemGroups(t *testing.T) {
	u, folder := newUsers(t), t.TempDir()
	authority := newAuthority(t, folder, "proxies")
	p := host(t, u, folder, "--authentication=FrontProxy", "--requestheader-client-ca-file", filepath.Join(folder, "proxies.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-")
	for _, pairs := range [][]string{
		{"X-Remote-User", "jane", "X-Remote-Group", "system:masters"}, {"X-Remote-User", "jane", "X-Remote-Group", " system:masters"},
		{"X-Remote-User", " system:admin"}, {"X-Remote-User", " "}, {"X-Remote-User", "jane", "X-Remote-Extra-Scopes", " x"},
	} {
		jane := p.with(pairs...).certified(t, func() (pki.Pair, error) { return authority.Client("any") })
		jane.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		if status, body := jane.call(t, "/api/session", "{}"); status != http.StatusForbidden || len(u.requestedAs()) > 0 {
			t.Errorf("%q: status %d: %s", pairs, status, body)
		}
	}
}

// certified returns a proxy with a client certificate.
func (p *proxy) certified(t *testing.T, certificate func() (pki.Pair, error)) *proxy {
	t.Helper()
	other := *p
	transport := p.client.Transport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	other.client = &http.Client{Transport: transport}
	if certificate == nil {
		return &other
	}
	pair, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{loaded}
	return &other
}

// TestWrongServeFlags names the flag that is wrong.
func TestWrongServeFlags(t *testing.T) {
	right := []string{"--url=https://slipstream.example.com", "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key"}
	for args, want := range map[string]string{
		"--url=":                                 "--url: ",
		"--url=http://slipstream.example.com":    "--url: ",
		"--url=https://slipstream.example.com/x": "--url: ",
		"--url=https://jane@example.com":         "--url: ",
		"--url=https://Example.com":              "--url: ",
		"--tls-cert-file=":                       "--tls-cert-file is missing",
		"--tls-private-key-file=":                "--tls-private-key-file is missing",
		"--authentication=Basic":                 `--authentication: "Basic" is neither Token nor FrontProxy`,
		"--authentication=FrontProxy":            "--requestheader-client-ca-file is missing",
		"--impersonated-groups=system:masters":   "--impersonated-groups: groups of Kubernetes itself",
		"--namespace=teams":                      "--namespace has no meaning here",
		"--server=":                              "--server is missing",
		"--impersonated-groups=a":                "--impersonated-groups",
		"--server=http://127.0.0.1:1":            "--server: ",
		"--logout-url=javascript:alert(1)":       "--logout-url: ",
		"--max-sessions=0":                       "--max-sessions: 0",
	} {
		command := app.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
		command.SetArgs(slices.Concat([]string{"dashboard", "serve", "--server=https://127.0.0.1:1", "--kubeconfig=" + os.DevNull}, right, []string{args}))
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
