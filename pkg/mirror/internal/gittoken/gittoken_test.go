// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/logintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a handler and returns its URL.
func serve(t *testing.T, handler http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// gitHub is GitHub, and an app of it, with clocks of their own.
type gitHub struct {
	*logintest.GitHub
	clock *testkit.Clock
	app   gittoken.GitHubApp
	// tokens are by the clock, which ahead is added to.
	tokens *gittoken.Tokens
	ahead  time.Duration
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	clock := testkit.NewClock(t)
	g := &gitHub{clock: clock, GitHub: logintest.NewGitHub(t, clock.Now, http.NotFoundHandler(), "acme", "shop", "other")}
	g.app = gittoken.GitHubApp{
		AppID: g.AppID, InstallationID: g.InstallationID, PrivateKey: g.PrivateKey, API: serve(t, g.GitHub).JoinPath("api", "v3"),
		Repository: "acme/shop",
	}
	g.tokens = gittoken.New(direct(new(net.Dialer).DialContext), func() time.Time { return clock.Now().Add(g.ahead) })
	return g
}

// token returns the current token of the app.
func (g *gitHub) token(t *testing.T, refused string) string {
	t.Helper()
	token, err := g.tokens.Source(&g.app, nil).Token(t.Context(), refused)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestGitHubTokensAreCachedUntilFiveMinutesBeforeTheirEnd(t *testing.T) {
	g := newGitHub(t)
	first := g.token(t, "")
	for _, step := range []struct {
		after time.Duration
		again bool
	}{{54*time.Minute + 59*time.Second, true}, {time.Second, false}} {
		g.clock.Advance(1, step.after)
		if again := g.token(t, "") == first; again != step.again {
			t.Errorf("the same token after %s: %t", step.after, again)
		}
	}
	if g.Issued() != 2 {
		t.Errorf("%d tokens issued, want 2", g.Issued())
	}
	if got := g.Requested()[0]; len(got) != 1 || got["contents"] != "write" {
		t.Errorf("permissions %v", got)
	}
}

func TestGitHubTokenForPullRequests(t *testing.T) {
	g := newGitHub(t)
	first := g.token(t, "")
	g.app.PullRequests = true
	if g.token(t, "") == first {
		t.Error("the token without the permission is used")
	}
	if got := g.Requested()[1]; len(got) != 2 || got["contents"] != "write" || got["pull_requests"] != "write" {
		t.Errorf("permissions %v", got)
	}
}

func TestGitHubInstallationIsFoundByItsOwner(t *testing.T) {
	for name, user := range map[string]bool{"organization": false, "user": true} {
		t.Run(name, func(t *testing.T) {
			g := newGitHub(t)
			g.User, g.app.InstallationID, g.app.Owner = user, "", "Acme"
			g.token(t, "")
		})
	}
}

// TestTokensAreShared requests a token by many callers at once, and then one with every part of the identity changed.
func TestTokensAreShared(t *testing.T) {
	g := newGitHub(t)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if _, err := g.tokens.Source(&g.app, nil).Token(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if g.Issued() != 1 {
		t.Errorf("%d tokens issued for 20 callers", g.Issued())
	}
	before := g.tokens.Source(&g.app, nil)
	for name, change := range map[string]func(*gittoken.GitHubApp){
		"app":          func(a *gittoken.GitHubApp) { a.AppID = "2" },
		"installation": func(a *gittoken.GitHubApp) { a.InstallationID = "2" },
		"owner":        func(a *gittoken.GitHubApp) { a.Owner = "x" },
		"key":          func(a *gittoken.GitHubApp) { a.PrivateKey = logintest.NewAppKey(t) },
		"API":          func(a *gittoken.GitHubApp) { a.API = a.API.JoinPath("x") },
		"authorities":  func(a *gittoken.GitHubApp) { a.CABundle = []byte("x") },
		"repository":   func(a *gittoken.GitHubApp) { a.Repository = "acme/other" },
	} {
		changed := g.app
		change(&changed)
		if g.tokens.Source(&changed, nil) == before {
			t.Errorf("another %s has the same token", name)
		}
	}
}

func TestRefusedTokensAreReplaced(t *testing.T) {
	g := newGitHub(t)
	token := g.token(t, "")
	if g.token(t, "another") != token {
		t.Error("a token was replaced although another was refused")
	}
	const burst = 6
	for range burst {
		next := g.token(t, token)
		if next == token {
			t.Fatal("the refused token is returned")
		}
		token = next
	}
	if g.token(t, token) != token {
		t.Error("tokens are requested without limit")
	}
	g.clock.Advance(1, time.Minute)
	if g.token(t, token) == token {
		t.Error("no token is requested after a minute")
	}
}

// TestTokenIsUsedUntilItsEnd makes renewals fail.
func TestTokenIsUsedUntilItsEnd(t *testing.T) {
	g := newGitHub(t)
	first := g.token(t, "")
	g.Change(logintest.Installation{Limited: true})
	g.clock.Advance(1, 56*time.Minute)
	if g.token(t, "") != first {
		t.Error("the token is not used although it is valid")
	}
	g.clock.Advance(1, 4*time.Minute)
	if _, err := g.tokens.Source(&g.app, nil).Token(t.Context(), ""); err == nil {
		t.Error("the token is used after its end")
	}
	g.Change(logintest.Installation{})
	if g.token(t, "") == first {
		t.Error("the token was not renewed")
	}
}

// TestClocksDiffer gives a token the time that the host gives it, whatever our clock shows.
func TestClocksDiffer(t *testing.T) {
	g := newGitHub(t)
	g.ahead = -8 * time.Minute
	first := g.token(t, "")
	g.clock.Advance(1, 54*time.Minute)
	if g.token(t, "") != first {
		t.Error("renewed too early")
	}
	g.clock.Advance(1, 2*time.Minute)
	if g.token(t, "") == first {
		t.Error("renewed too late")
	}
}

// failure returns the error of a source, which must not have secrets.
func failure(t *testing.T, tokens *gittoken.Tokens, issuer gittoken.Issuer) *gittoken.Error {
	t.Helper()
	_, err := tokens.Source(issuer, nil).Token(t.Context(), "")
	var failed *gittoken.Error
	if !errors.As(err, &failed) {
		t.Fatalf("error %v", err)
	}
	for _, hidden := range []string{"eyJ", "PRIVATE", "ghs_"} {
		if strings.Contains(failed.Message, hidden) {
			t.Errorf("message contains %q: %s", hidden, failed.Message)
		}
	}
	return failed
}

func TestGitHubRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, g *gitHub)
		kind   gittoken.Kind
		says   string
	}{
		"other key": {
			func(t *testing.T, g *gitHub) { g.app.PrivateKey = logintest.NewAppKey(t) }, gittoken.Refused,
			"refuses the key of the app 1234567 (\"A JSON web token could not be decoded: [REDACTED]\"): correct githubAppID, or generate a new key",
		},
		"no key": {func(_ *testing.T, g *gitHub) { g.app.PrivateKey = []byte("PRIVATE") }, gittoken.Invalid, "not an RSA private key in PEM form"},
		"large key": {
			func(_ *testing.T, g *gitHub) { g.app.PrivateKey = make([]byte, 17<<10) }, gittoken.Invalid, "larger than 16384 bytes",
		},
		"other app": {
			func(_ *testing.T, g *gitHub) { g.app.AppID = "1" }, gittoken.Refused,
			"has no installation 7654321 of the app 1 (\"Integration not found\")",
		},
		"other installation": {
			func(_ *testing.T, g *gitHub) { g.app.InstallationID = "1" }, gittoken.Refused,
			"has no installation 1 of the app 1234567 (\"Not Found\"): it was removed",
		},
		"other owner": {
			func(_ *testing.T, g *gitHub) { g.app.InstallationID, g.app.Owner = "", "umbrella" }, gittoken.Refused,
			"the app 1234567 is not installed for umbrella",
		},
		"owner with a path": {
			func(_ *testing.T, g *gitHub) { g.app.InstallationID, g.app.Owner = "", "../../app" }, gittoken.Refused, "is not installed for",
		},
		"removed": {
			func(_ *testing.T, g *gitHub) { g.Change(logintest.Installation{Removed: true}) }, gittoken.Refused, "it was removed",
		},
		"suspended": {
			func(_ *testing.T, g *gitHub) { g.Change(logintest.Installation{Suspended: true}) }, gittoken.Refused,
			"(\"This installation has been suspended\"): if it is suspended, unsuspend it",
		},
		"without the repository": {
			func(_ *testing.T, g *gitHub) { g.Change(logintest.Installation{Repositories: []string{"other"}}) }, gittoken.Refused,
			"does not grant contents: write for acme/shop",
		},
		"without the permission": {
			func(_ *testing.T, g *gitHub) {
				g.app.PullRequests = true
				g.Change(logintest.Installation{Permissions: map[string]string{"contents": "write", "pull_requests": "read"}})
			}, gittoken.Refused, "does not grant contents: write and pull_requests: write for acme/shop",
		},
		"of another account": {
			func(_ *testing.T, g *gitHub) { g.app.Repository = "umbrella/shop" }, gittoken.Refused,
			"gives access to acme/shop, but spec.repoUrl names umbrella/shop: correct githubAppInstallationID",
		},
		"rate limit": {
			func(_ *testing.T, g *gitHub) { g.Change(logintest.Installation{Limited: true}) }, gittoken.Unreachable, "cannot answer now (403 Forbidden)",
		},
		"clock ahead": {
			func(_ *testing.T, g *gitHub) { g.ahead = 7 * time.Minute }, gittoken.Refused, "the clock of this server is 7m0s ahead of that of",
		},
		"clock behind": {
			func(_ *testing.T, g *gitHub) { g.ahead = -11 * time.Minute }, gittoken.Refused, "the clock of this server is 11m0s behind that of",
		},
		"not the API": {
			func(t *testing.T, g *gitHub) {
				g.app.API = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
			}, gittoken.Unreachable, "does not answer with JSON (201 Created)",
		},
		"no server": {
			func(_ *testing.T, g *gitHub) { g.app.API = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} }, gittoken.Unreachable, "127.0.0.1:1 refuses connections",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGitHub(t)
			test.change(t, g)
			if got := failure(t, g.tokens, &g.app); got.Kind != test.kind || !strings.Contains(got.Message, test.says) {
				t.Errorf("%d: %s, want %d: %s", got.Kind, got.Message, test.kind, test.says)
			}
		})
	}
}

// TestJWTsReachOnlyTheAPI redirects the requests to another host.
func TestJWTsReachOnlyTheAPI(t *testing.T) {
	g := newGitHub(t)
	other := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("request %s", r.URL) }))
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		g.app.API = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.String()+r.URL.Path, code)
		}))
		if got := failure(t, g.tokens, &g.app); got.Kind != gittoken.Unreachable {
			t.Errorf("%d: %s", got.Kind, got.Message)
		}
	}
}

// direct returns a network that connects with a dialer, without proxies.
func direct(dial func(context.Context, string, string) (net.Conn, error)) *proxy.Network {
	return &proxy.Network{Direct: dial}
}

func TestDialerRefuses(t *testing.T) {
	g := newGitHub(t)
	refuse := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connections there are refused")
	}
	got := failure(t, gittoken.New(direct(refuse), g.clock.Now), &g.app)
	if got.Kind != gittoken.Unreachable || !strings.Contains(got.Message, "connections there are refused") {
		t.Errorf("%d: %s", got.Kind, got.Message)
	}
}

// TestCallerThatGivesUp cancels a request of a server that does not respond.
func TestCallerThatGivesUp(t *testing.T) {
	g := newGitHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	g.app.API = serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Until then the server does not see that the client has left.
		cancel()
		<-r.Context().Done()
	}))
	if _, err := g.tokens.Source(&g.app, nil).Token(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
