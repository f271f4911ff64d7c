// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
	"github.com/configbutler/slipstream/test/testkit/logintest"
)

// hiddenTexts are parts of credentials, which no message and no log has.
var hiddenTexts = []string{"PRIVATE KEY", "eyJ", "ghs_", "Bearer", "x-access-token:"}

// hides fails the test if a text has a part of credentials.
func hides(t *testing.T, text string) {
	t.Helper()
	for _, hidden := range hiddenTexts {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in: %s", hidden, text)
		}
	}
}

// serveHTTP serves a handler and returns its URL.
func serveHTTP(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// newGitHandler serves empty repositories.
func newGitHandler(t *testing.T) http.Handler {
	t.Helper()
	repositories, err := gitserver.NewRepositories(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git, err := repositories.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return git
}

// appSecret is the Secret of an app.
func appSecret(g *logintest.GitHub, change map[string]string) map[string][]byte {
	data := map[string][]byte{
		keyAppID: []byte(g.AppID), keyAppInstallation: []byte(g.InstallationID + "\n"), keyAppPrivateKey: g.PrivateKey,
	}
	for key, value := range change {
		data[key] = []byte(value)
	}
	return data
}

func TestGitHubApps(t *testing.T) {
	now := time.Now
	other := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("request to another host: %s", r.URL) }))
	for name, test := range map[string]struct {
		url     string
		secret  map[string]string
		change  *logintest.Installation
		reason  string
		message string
	}{
		"installation":    {},
		"owner":           {secret: map[string]string{keyAppInstallation: "", keyAppOwner: "acme"}},
		"host as the URL": {secret: map[string]string{keyAppBaseURL: "HOST"}},
		"URL of the API":  {secret: map[string]string{keyAppBaseURL: "HOST/api/v3/"}},
		"no app": {
			secret: map[string]string{keyAppID: ""}, reason: v1alpha1.ReasonSecretInvalid,
			message: "Secret shop/git needs the key githubAppID for provider github; its key githubAppID is empty",
		},
		"no installation": {
			secret: map[string]string{keyAppInstallation: ""}, reason: v1alpha1.ReasonSecretInvalid,
			message: "needs the key githubAppInstallationID or githubAppInstallationOwner",
		},
		"no key": {
			secret: map[string]string{keyAppPrivateKey: ""}, reason: v1alpha1.ReasonSecretInvalid, message: "needs the key githubAppPrivateKey",
		},
		"invalid key": {
			secret: map[string]string{keyAppPrivateKey: "PRIVATE KEY"}, reason: v1alpha1.ReasonSecretInvalid,
			message: "key githubAppPrivateKey of Secret shop/git cannot be used: it is not an RSA private key in PEM form",
		},
		"installation with a path": {
			secret: map[string]string{keyAppInstallation: "1/../2"}, reason: v1alpha1.ReasonSecretInvalid, message: "it is not a number",
		},
		"key of another app": {
			secret: map[string]string{keyAppPrivateKey: string(logintest.NewAppKey(t))}, reason: v1alpha1.ReasonAuthenticationFailed,
			message: "cannot get a token: AT refuses the key of the app 1234567",
		},
		"suspended": {
			change: &logintest.Installation{Suspended: true}, reason: v1alpha1.ReasonAuthenticationFailed, message: "unsuspend it",
		},
		"without the repository": {
			change: &logintest.Installation{Repositories: []string{"other"}}, reason: v1alpha1.ReasonAuthenticationFailed,
			message: "add the repository to the installation",
		},
		"rate limit": {change: &logintest.Installation{Limited: true}, reason: v1alpha1.ReasonRepositoryUnreachable, message: "cannot answer now"},
		"API of another host": {
			secret: map[string]string{keyAppBaseURL: other}, reason: v1alpha1.ReasonSecretInvalid,
			message: "but spec.repoUrl is of AT: its API is at AT/api/v3 or api.AT",
		},
		"API without TLS": {
			secret: map[string]string{keyAppBaseURL: "ftp://HOST"}, reason: v1alpha1.ReasonSecretInvalid, message: "must be an https URL",
		},
		"SSH": {url: "ssh://git@github.com/acme/shop", reason: v1alpha1.ReasonURLRefused, message: "provider github needs an https URL"},
		"no owner": {
			url: "https://github.com/shop", reason: v1alpha1.ReasonURLRefused, message: "provider github needs https://HOST/OWNER/REPOSITORY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := logintest.NewGitHub(t, now, newGitHandler(t), "acme", "shop")
			address := serveHTTP(t, g)
			if test.change != nil {
				g.Change(*test.change)
			}
			secret := map[string]string{}
			for key, value := range test.secret {
				secret[key] = strings.ReplaceAll(value, "HOST", address)
			}
			if test.url == "" {
				test.url = address + "/acme/shop.git"
			}
			r := &repositories{
				cluster: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "git"}, Data: appSecret(g, secret)}),
				now:     now, tokens: gittoken.New(onThisHost(t), now), network: onThisHost(t), allowInsecure: true,
			}
			err := pushOnce(t, r, &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}, Spec: v1alpha1.GitRepoConfigSpec{
				RepoURL: test.url, Provider: v1alpha1.ProviderGitHub, SecretRef: &v1alpha1.SecretReference{Name: "git"},
			}}, name)
			got := reasonOf(err, v1alpha1.ReasonPushFailed)
			want := strings.ReplaceAll(test.message, "AT", strings.TrimPrefix(address, "http://"))
			if got.Code != test.reason || !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q, want %s: %q", got.Code, got.Message, test.reason, want)
			}
			hides(t, got.Message)
		})
	}
}

// TestAPIOfGitHub checks which API belongs to a repository.
func TestAPIOfGitHub(t *testing.T) {
	g := logintest.NewGitHub(t, time.Now, nil, "acme", "shop")
	for repository, want := range map[string]string{
		"https://github.com/acme/shop":          "https://api.github.com",
		"https://GitHub.com/acme/shop.git/":     "https://api.github.com",
		"https://acme.ghe.com/acme/shop":        "https://api.acme.ghe.com",
		"https://git.example.com/acme/shop.git": "https://git.example.com/api/v3",
	} {
		config := &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{RepoURL: repository}}
		app, err := (&repositories{}).gitHubApp(config, &corev1.Secret{Data: appSecret(g, nil)})
		if err != nil || app.API.String() != want || app.Repository != "acme/shop" {
			t.Errorf("%s: %+v, %v, want %s", repository, app, err, want)
		}
	}
}

// onGitHub moves the repository of a fixture to GitHub, with the Secret of an app.
func onGitHub(g **logintest.GitHub) func(*fixture) {
	return func(s *fixture) {
		*g = logintest.NewGitHub(s.t, s.now, http.StripPrefix("/acme", s.git), "acme", "shop")
		spec := &s.in.repositories[0].Spec
		spec.RepoURL, spec.Provider = serveHTTP(s.t, *g)+"/acme/shop.git", v1alpha1.ProviderGitHub
		spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
		s.putSecret("git", appSecret(*g, nil))
	}
}

// TestBurstWhileTokensEnd ends tokens every few changes: as GitHub announced, and without that. No push may fail.
func TestBurstWhileTokensEnd(t *testing.T) {
	var g *logintest.GitHub
	s := newFixture(t, perChange, onGitHub(&g))
	s.idle()
	g.EndAfter(2)
	pauses := []time.Duration{56 * time.Minute, time.Minute, time.Minute, time.Hour, time.Minute, time.Minute}
	for i := range 2 * len(pauses) {
		for change := range 4 {
			s.cluster.put(configMap(fmt.Sprint(change)), fmt.Sprint(i))
		}
		s.mirrored()
		s.ahead.Add(int64(pauses[i%len(pauses)]))
	}
	s.idle()
	if retries := s.record("main").PushRetries; retries != 0 {
		t.Errorf("%d pushes failed", retries)
	}
	if g.Refused() < len(pauses)/3 || g.Issued() <= len(pauses) {
		t.Errorf("only %d tokens were issued and %d refused", g.Issued(), g.Refused())
	}
	hides(t, s.logged())
}

// TestAppIsSuspendedAndItsKeyRotated takes the rights away twice, and gives them back.
func TestAppIsSuspendedAndItsKeyRotated(t *testing.T) {
	var g *logintest.GitHub
	s := newFixture(t, pollOften, onGitHub(&g))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()

	g.Change(logintest.Installation{Suspended: true})
	g.Revoke()
	s.cluster.put(configMap("a"), "2")
	hides(t, s.waitReady("main", v1alpha1.ReasonAuthenticationFailed).Message)
	g.Change(logintest.Installation{})
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)

	key := g.RotateKey(t)
	s.cluster.put(configMap("a"), "3")
	hides(t, s.waitReady("main", v1alpha1.ReasonAuthenticationFailed).Message)
	s.putSecret("git", appSecret(g, map[string]string{keyAppPrivateKey: string(key)}))
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	hides(t, s.logged())
	for len(s.warned) > 0 {
		hides(t, <-s.warned)
	}
}

// proposingByApp moves the repository of a fixture to GitHub, where an app opens the pull requests, too.
func proposingByApp(g **logintest.GitHub) func(*fixture) {
	return func(s *fixture) {
		onGitHub(g)(s)
		target, err := url.Parse(s.api.APIURL)
		if err != nil {
			s.t.Fatal(err)
		}
		(*g).ServePullRequests(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.URL.Path = strings.Replace(r.In.URL.Path, "/acme/shop", "/acme/clusters", 1)
			r.Out.Header.Set("Authorization", "Bearer "+githosttest.Token)
		}})
		s.host = func(ctx context.Context, _ branchKey) (githost.Host, error) {
			return s.repositories.host(ctx, s.in.repositories[0])
		}
	}
}

// TestProposalsOfApp opens and updates a pull request with the tokens of an app, which end early and lose a permission.
func TestProposalsOfApp(t *testing.T) {
	var g *logintest.GitHub
	p := newProposing(t, githosttest.GitHub, proposingByApp(&g))
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	mayPropose := func(permissions map[string]string) bool { return permissions["pull_requests"] == "write" }
	if requested := g.Requested(); !slices.ContainsFunc(requested, mayPropose) || mayPropose(requested[0]) {
		t.Errorf("tokens with the permissions %v: only those for the API need pull_requests", requested)
	}

	g.Revoke()
	p.cluster.put(configMap("b"), "1")
	p.proposed(1, 2)
	p.ahead.Add(int64(2 * time.Hour)) // The tokens have ended.
	p.cluster.put(configMap("c"), "1")
	p.proposed(1, 3)

	g.Change(logintest.Installation{Permissions: map[string]string{"contents": "write", "metadata": "read"}})
	g.Revoke()
	p.cluster.put(configMap("d"), "1")
	p.holds(head, "clusters/a", inShop)
	testkit.Eventually(t, "the missing permission", func() error {
		ready := p.ready("main")
		if !strings.Contains(ready.Message, "permission") {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		hides(t, ready.Message)
		return nil
	})
	g.Change(logintest.Installation{Permissions: map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"}})
	p.proposed(1, 4)
	p.waitReady("main", v1alpha1.ReasonSucceeded)
	hides(t, p.logged())
}
