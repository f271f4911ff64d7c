// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logintest

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// gitHubAPI is the path of the API of GitHub Enterprise Server.
	gitHubAPI = "/api/v3"
	// maxAssertion is how long GitHub accepts the JWT of an app.
	maxAssertion = 10 * time.Minute
	// tokenLifetime is how long an installation token is valid.
	tokenLifetime = time.Hour
)

// GitHub is GitHub Enterprise Server with one app, which is installed for one account: the API, and the repositories behind it.
//
// docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app, docs.github.com/en/rest/apps/apps.
type GitHub struct {
	*tokens

	// AppID, InstallationID and PrivateKey identify the app and its installation.
	AppID, InstallationID string
	PrivateKey            []byte
	// Account is the organization or the user, User is set for a user.
	Account string
	User    bool

	now    func() time.Time
	public *rsa.PublicKey
	git    http.Handler
	// pulls serves the pull requests of the repository; nil if there are none.
	pulls http.Handler

	mu sync.Mutex
	// repositories are those of the installation, permissions what it grants.
	repositories []string
	permissions  map[string]string
	suspended    bool
	removed      bool
	limited      bool
	lifetime     time.Duration
	requested    []map[string]string
}

// NewGitHub returns GitHub with an app that is installed for the repositories of an account and may write their contents and pull
// requests. now is its clock. git serves the repositories, at /ACCOUNT/NAME.
func NewGitHub(t testing.TB, now func() time.Time, git http.Handler, account string, repositories ...string) *GitHub {
	t.Helper()
	key, private := newKey(t)
	return &GitHub{
		tokens: newTokens("ghs_", now), AppID: "1234567", InstallationID: "7654321", PrivateKey: private, Account: account,
		now: now, public: &key.PublicKey, git: git, repositories: repositories, lifetime: tokenLifetime,
		permissions: map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"},
	}
}

// ServePullRequests serves requests to the API of a repository with a handler, if they have a token that may write pull requests.
func (g *GitHub) ServePullRequests(handler http.Handler) { g.pulls = handler }

// Change changes the installation.
func (g *GitHub) Change(change Installation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspended, g.removed, g.limited = change.Suspended, change.Removed, change.Limited
	if change.Repositories != nil {
		g.repositories = change.Repositories
	}
	if change.Permissions != nil {
		g.permissions = change.Permissions
	}
	if change.Lifetime > 0 {
		g.lifetime = change.Lifetime
	}
}

// Installation is what can change of an installation. Absent repositories, permissions and lifetimes stay.
type Installation struct {
	Suspended, Removed bool
	// Limited is set if GitHub's rate limit is exceeded.
	Limited      bool
	Repositories []string
	Permissions  map[string]string
	// Lifetime is that of tokens.
	Lifetime time.Duration
}

// RotateKey replaces the key of the app, and ends its tokens. It returns the new private key.
func (g *GitHub) RotateKey(t testing.TB) []byte {
	t.Helper()
	key, private := newKey(t)
	g.mu.Lock()
	g.public = &key.PublicKey
	g.mu.Unlock()
	g.Revoke()
	return private
}

// Requested returns the permissions that each issued token was limited to.
func (g *GitHub) Requested() []map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.requested)
}

// ServeHTTP serves the API and the repositories.
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", g.now().UTC().Format(http.TimeFormat))
	if path, found := strings.CutPrefix(r.URL.Path, gitHubAPI); found {
		if repository, found := strings.CutPrefix(path, "/repos"); found && g.pulls != nil {
			g.servePulls(w, r, repository)
			return
		}
		g.serveAPI(w, r, path)
		return
	}
	if user, password, _ := r.BasicAuth(); user != "x-access-token" || !g.accepts(password, r.URL.Path) {
		refuse(w, r)
		return
	}
	g.git.ServeHTTP(w, r)
}

// say responds with a message of the API.
func say(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

func (g *GitHub) servePulls(w http.ResponseWriter, r *http.Request, path string) {
	value, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !g.accepts(value, path):
		say(w, http.StatusUnauthorized, "Bad credentials")
	case g.permissionsOf(value)["pull_requests"] != "write":
		say(w, http.StatusForbidden, "Resource not accessible by integration")
	default:
		g.pulls.ServeHTTP(w, r)
	}
}

var tokenPath = regexp.MustCompile(`^/app/installations/([^/]+)/access_tokens$`)

func (g *GitHub) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if status, message := g.checkAssertion(r); status != 0 {
		say(w, status, message)
		return
	}
	accounts := "/orgs/"
	if g.User {
		accounts = "/users/"
	}
	match := tokenPath.FindStringSubmatch(path)
	switch {
	case g.limited:
		w.Header().Set("X-Ratelimit-Remaining", "0")
		say(w, http.StatusForbidden, "API rate limit exceeded for installation ID "+g.InstallationID+".")
	case r.Method == http.MethodGet && strings.EqualFold(path, accounts+g.Account+"/installation") && !g.removed:
		_, _ = fmt.Fprintf(w, `{"id":%s,"account":{"login":%q}}`, g.InstallationID, g.Account)
	case r.Method == http.MethodPost && match != nil && match[1] == g.InstallationID && !g.removed:
		g.serveToken(w, r)
	default:
		say(w, http.StatusNotFound, "Not Found")
	}
}

// checkAssertion returns how GitHub refuses the JWT of a request, 0 if it accepts it.
func (g *GitHub) checkAssertion(r *http.Request) (int, string) {
	assertion, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	content, err := verify(assertion, g.public)
	issuedAt, integer := content.integer("iat")
	expires, numeric := content.integer("exp")
	now := g.now()
	switch {
	case !found || err != nil:
		// GitHub does not quote the JWT. A server that does must not make it visible.
		return http.StatusUnauthorized, "A JSON web token could not be decoded: " + assertion
	case content["iss"] != g.AppID:
		return http.StatusNotFound, "Integration not found"
	case !integer || time.Unix(issuedAt, 0).After(now):
		return http.StatusUnauthorized,
			"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case !numeric || !time.Unix(expires, 0).After(now):
		return http.StatusUnauthorized,
			"'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case time.Unix(expires, 0).After(now.Add(maxAssertion)):
		return http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future"
	}
	return 0, ""
}

func (g *GitHub) serveToken(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Repositories []string          `json:"repositories"`
		Permissions  map[string]string `json:"permissions"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		say(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	if g.suspended {
		say(w, http.StatusForbidden, "This installation has been suspended")
		return
	}
	for _, name := range body.Repositories {
		if !slices.Contains(g.repositories, name) {
			say(w, http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
			return
		}
	}
	for name, level := range body.Permissions {
		if granted := g.permissions[name]; granted != level && granted != "write" {
			say(w, http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			return
		}
	}
	if len(body.Repositories) != 1 || len(body.Permissions) == 0 {
		say(w, http.StatusUnprocessableEntity, "this test wants tokens that are limited")
		return
	}
	g.requested = append(g.requested, body.Permissions)
	name := g.Account + "/" + body.Repositories[0]
	value, end := g.issue(name, g.lifetime, body.Permissions)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token": value, "expires_at": end.UTC().Format(time.RFC3339), "permissions": body.Permissions,
		"repository_selection": "selected", "repositories": []map[string]any{{"name": body.Repositories[0], "full_name": name}},
	})
}
