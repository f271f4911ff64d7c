// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// requireAuthorization returns a handler that requires an Authorization header.
func requireAuthorization(authorization string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Header.Get("Authorization") != authorization {
				http.Error(response, "unauthorized: "+request.Header.Get("Authorization"), http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(response, request)
		})
	}
}

func TestHTTPCredentials(t *testing.T) {
	const basic, token, secret = "Basic Ym90OnMzY3JldC9wYXNz", "Bearer t0ken", "s3cret/pass"
	for name, test := range map[string]struct {
		expect      string
		user        *url.Userinfo
		credentials gitrepo.Credentials
		want        gitrepo.Kind
	}{
		"basic":        {expect: basic, credentials: gitrepo.Credentials{Username: "bot", Password: secret}},
		"in the URL":   {expect: basic, user: url.UserPassword("bot", secret)},
		"user in URL":  {expect: basic, user: url.User("bot"), credentials: gitrepo.Credentials{Password: secret}},
		"no user name": {expect: "Basic Z2l0OnMzY3JldC9wYXNz", credentials: gitrepo.Credentials{Password: secret}},
		"bearer":       {expect: token, credentials: gitrepo.Credentials{BearerToken: "t0ken"}},
		"wrong token":  {expect: token, credentials: gitrepo.Credentials{BearerToken: "other-t0ken"}, want: gitrepo.Unauthorized},
		"wrong password": {
			expect: token, credentials: gitrepo.Credentials{Username: "bot", Password: secret}, want: gitrepo.Unauthorized,
		},
		"wrong in URL": {expect: token, user: url.UserPassword("bot", secret), want: gitrepo.Unauthorized},
		"anonymous":    {expect: token, want: gitrepo.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			address, _ := url.Parse(r.serve(requireAuthorization(test.expect)))
			address.User = test.user
			remote := newRemote(t, address.String())
			remote.Credentials = test.credentials
			err := remote.Check(t.Context())
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				branch := load(t, remote, gitrepo.Options{})
				stage(t, branch, set("a", "a"))
				push(t, branch)
				return
			}
			hasKind(t, err, test.want)
			for _, hidden := range []string{secret, url.QueryEscape(secret), "t0ken", strings.TrimPrefix(basic, "Basic ")} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("error contains %q: %v", hidden, err)
				}
			}
		})
	}
}

func hasKind(t *testing.T, err error, want gitrepo.Kind) {
	t.Helper()
	var failure *gitrepo.Error
	if !errors.As(err, &failure) || failure.Kind != want {
		t.Errorf("error %v (%#v), want %s", err, failure, want)
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	credentials := gitrepo.Credentials{
		Username: "someone", Password: "s3cret", BearerToken: "s3cret", SSHPrivateKey: []byte("s3cret"), ClientKey: []byte("s3cret"),
	}
	encoded, err := json.Marshal(map[string]any{"c": credentials, "p": &credentials})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	remote := newRemote(t, "http://someone:s3cret@name.invalid/x")
	remote.Credentials = credentials
	hasKind(t, remote.Check(t.Context()), gitrepo.Invalid) // The key is invalid. The remote is initialized after this call.
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, credentials), fmt.Sprintf(verb, &credentials), fmt.Sprintf(verb, remote),
			fmt.Sprintf(verb, struct{ Remote *gitrepo.Remote }{remote}))
	}
	if got := remote.String(); got != "http://name.invalid/x" {
		t.Errorf("String() = %q", got)
	}
	for _, text := range texts {
		if strings.Contains(text, "s3cret") || strings.Contains(text, fmt.Sprintf("%x", "s3cret")) || strings.Contains(text, "115 51") {
			t.Errorf("credentials are part of %q", text)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	respond := func(code int, kind, body string) http.HandlerFunc {
		return func(response http.ResponseWriter, request *http.Request) {
			response.Header().Set("Content-Type", strings.ReplaceAll(kind, "SERVICE", request.FormValue("service")))
			response.WriteHeader(code)
			_, _ = response.Write([]byte(body))
		}
	}
	const advertisement = "application/x-SERVICE-advertisement"
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    gitrepo.Kind
		message string
	}{
		"forbidden":   {respond(403, "text/plain", "not yours"), gitrepo.Unauthorized, "not yours"},
		"not found":   {respond(404, "text/html", "<html>"), gitrepo.NotFound, "404 Not Found"},
		"overloaded":  {respond(503, "text/plain", "later"), gitrepo.Unreachable, "later"},
		"too many":    {respond(429, "text/plain", "slow down"), gitrepo.Unreachable, "slow down"},
		"login page":  {respond(200, "text/html; charset=utf-8", "<html>"), gitrepo.Protocol, "text/html"},
		"error line":  {respond(200, advertisement, "001fERR Repository not found.\n\n\n"), gitrepo.NotFound, "Repository not found."},
		"malformed":   {respond(200, advertisement, "hello world"), gitrepo.Protocol, "does not speak"},
		"truncated":   {respond(200, advertisement, ""), gitrepo.Unreachable, ""},
		"SHA-256":     {respond(200, advertisement, sha256Advertisement()), gitrepo.Protocol, "does not speak"},
		"dumb server": {respond(200, "text/plain", "# refs"), gitrepo.Protocol, "text/plain"},
		"teapot":      {respond(418, "text/plain", "short and stout"), gitrepo.Rejected, "short and stout"},
		"endless loop": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }, gitrepo.Protocol, "too often",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			err := newRemote(t, server.URL+"/repository").Check(t.Context())
			hasKind(t, err, test.want)
			var failed *gitrepo.Error
			if outage := test.want == gitrepo.Unreachable && name != "too many"; errors.As(err, &failed) && failed.IsOutage() != outage {
				t.Errorf("an outage: %t, want %t", !outage, outage)
			}
			if err != nil && !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %q does not contain %q", err, test.message)
			}
		})
	}
}

func sha256Advertisement() string {
	line := strings.Repeat("a", 64) + " refs/heads/main\x00object-format=sha256\n"
	return fmt.Sprintf("%04x%s0000", len(line)+4, line)
}

func TestInvalidRemotes(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]gitrepo.Kind{
		"":                                  gitrepo.Invalid,
		"ftp://example.com/x":               gitrepo.Invalid,
		"https://bot:s3cret@exa mple.com/x": gitrepo.Invalid,
		closed.URL + "/x":                   gitrepo.Unreachable,
		filepath.Join(t.TempDir(), "none"):  gitrepo.NotFound,
		"ssh://git@127.0.0.1:1/x":           gitrepo.Invalid, // No known_hosts.
	} {
		err := newRemote(t, url).Check(t.Context())
		hasKind(t, err, want)
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error contains the password: %v", err)
		}
	}
}

func TestRedirects(t *testing.T) {
	const authorization = "Bearer t0ken"
	r := newRepository(t)
	var leaked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer elsewhere.Close()
	base := filepath.Base(r.path)
	home := r.serve(func(next http.Handler) http.Handler {
		return requireAuthorization(authorization)(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			switch {
			case strings.HasPrefix(request.URL.Path, "/renamed/"):
				http.Redirect(response, request, "/"+base+strings.TrimPrefix(request.URL.Path, "/renamed")+"?"+request.URL.RawQuery,
					http.StatusMovedPermanently)
			case strings.HasPrefix(request.URL.Path, "/away/"):
				http.Redirect(response, request, elsewhere.URL+request.URL.Path, http.StatusFound)
			case request.Method == http.MethodPost && strings.HasPrefix(request.URL.Path, "/later/"):
				http.Redirect(response, request, elsewhere.URL+request.URL.Path, http.StatusTemporaryRedirect)
			case strings.HasPrefix(request.URL.Path, "/later/"):
				request.URL.Path = "/" + base + strings.TrimPrefix(request.URL.Path, "/later")
				next.ServeHTTP(response, request)
			default:
				next.ServeHTTP(response, request)
			}
		}))
	})
	home = strings.TrimSuffix(home, "/"+base)
	remoteAt := func(url string) *gitrepo.Remote {
		remote := newRemote(t, url)
		remote.Credentials.BearerToken = "t0ken"
		return remote
	}
	branch := load(t, remoteAt(home+"/renamed"), gitrepo.Options{})
	stage(t, branch, set("a", "a"))
	push(t, branch)
	err := remoteAt(home + "/away").Check(t.Context())
	hasKind(t, err, gitrepo.Rejected)
	if !strings.Contains(err.Error(), strings.TrimPrefix(elsewhere.URL, "http://")) {
		t.Errorf("error does not name the other host: %v", err)
	}
	_, err = gitrepo.Load(t.Context(), remoteAt(home+"/later"), "main", gitrepo.Options{})
	hasKind(t, err, gitrepo.Protocol)
	if leaked.Load() != 0 {
		t.Errorf("%d requests were sent to another host", leaked.Load())
	}
}

func TestHTTPS(t *testing.T) {
	r := newRepository(t)
	server := httptest.NewUnstartedServer(r.backend())
	client := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(client.certificate)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		credentials gitrepo.Credentials
		want        gitrepo.Kind
	}{
		"both":                  {gitrepo.Credentials{CABundle: authority, ClientCert: client.certificate, ClientKey: client.key}, ""},
		"no client certificate": {gitrepo.Credentials{CABundle: authority}, gitrepo.Unreachable},
		"unknown authority":     {gitrepo.Credentials{ClientCert: client.certificate, ClientKey: client.key}, gitrepo.Unreachable},
		"invalid bundle":        {gitrepo.Credentials{CABundle: []byte("x")}, gitrepo.Invalid},
		"very large key": {
			gitrepo.Credentials{
				CABundle: authority, ClientCert: client.certificate, ClientKey: slices.Concat(client.key, bytes.Repeat([]byte("\n"), 16<<10)),
			},
			gitrepo.Invalid,
		},
		"invalid key": {gitrepo.Credentials{ClientCert: client.certificate, ClientKey: []byte("x")}, gitrepo.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			remote := newRemote(t, server.URL+"/"+filepath.Base(r.path))
			remote.Credentials = test.credentials
			err := remote.Check(t.Context())
			if test.want != "" {
				hasKind(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConnectionReuse(t *testing.T) {
	r := newRepository(t)
	var dialed atomic.Int64
	remote := newRemote(t, r.serve(plain))
	remote.Network = &proxy.Network{Direct: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	branch := load(t, remote, gitrepo.Options{})
	w := r.clone()
	for i := range 5 {
		stage(t, branch, set("a", fmt.Sprint(i)))
		push(t, branch)
		w.git("pull", "--quiet", "origin", "main")
		w.write("b", fmt.Sprint(i))
		w.push("theirs")
		refreshed(t, r, branch)
	}
	if dialed.Load() != 1 {
		t.Errorf("%d connections for sequential operations, want 1", dialed.Load())
	}
}

func TestDialError(t *testing.T) {
	r := newRepository(t)
	forbidden := errors.New("address is not allowed")
	for _, url := range []string{r.serve(plain), "ssh://git@127.0.0.1:2222/x"} {
		remote := newRemote(t, url)
		remote.Credentials.KnownHosts = []byte("[127.0.0.1]:2222 " + hostKeyLine)
		remote.Network = &proxy.Network{Direct: func(context.Context, string, string) (net.Conn, error) { return nil, forbidden }}
		err := remote.Check(t.Context())
		hasKind(t, err, gitrepo.Unreachable)
		if !errors.Is(err, forbidden) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// hostKeyLine is the line of an unrelated key in known_hosts.
const hostKeyLine = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"

// TestCancel cancels operations while the server does not respond.
func TestCancel(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	r := newRepository(t)
	r.clone().first("a", "a\n")
	var silent atomic.Value
	silent.Store("")
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if at, _ := silent.Load().(string); at != "" && strings.Contains(request.Method+request.URL.String(), at) {
				select {
				case <-release:
				case <-request.Context().Done():
				}
				return
			}
			next.ServeHTTP(response, request)
		})
	})
	remote := newRemote(t, url)
	branch := load(t, remote, gitrepo.Options{})
	for at, operation := range map[string]func(context.Context) error{
		"service=git-receive-pack": remote.Check,
		"POST":                     func(ctx context.Context) error { _, err := branch.Push(ctx); return err },
		"service=git-upload-pack":  branch.Refresh,
	} {
		silent.Store("")
		stage(t, branch, set("b", at))
		silent.Store(at)
		checkCanceled(t, at, operation)
		if branch.Snapshot().Len("") != 1 && at == "POST" {
			t.Error("snapshot has the files of a canceled push")
		}
		_ = branch.Refresh(canceledContext(t))
	}
}

// checkCanceled runs the operation with a context that expires and fails if it does not return.
func checkCanceled(t *testing.T, name string, operation func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- operation(ctx) }()
	select {
	case err := <-result:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v", name, err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s did not return after its context ended", name)
	}
}

func TestCancelLocal(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.path), gitrepo.Options{})
	r.hook("pre-receive", "exec sleep 5\n")
	stage(t, branch, set("a", "a"))
	checkCanceled(t, "push", func(ctx context.Context) error { _, err := branch.Push(ctx); return err })
}
