// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// GitHub accepts a JWT for ten minutes at most. It is dated back for clocks that are ahead of GitHub's.
	jwtLifetime = 10 * time.Minute
	jwtBackdate = time.Minute
	// maxAppKey bounds the private key in bytes: RSA with 16384 bits takes 12 KiB.
	maxAppKey = 16 << 10
	// The versions of GitHub's API and of its responses.
	gitHubAccept  = "application/vnd.github+json"
	gitHubVersion = "2022-11-28"
)

// GitHubApp obtains installation tokens for one repository.
type GitHubApp struct {
	// AppID identifies the app: its ID, or its client ID.
	AppID string
	// InstallationID identifies the installation. If it is empty, the installation of Owner is used.
	InstallationID string
	// Owner is an organization or a user.
	Owner string
	// PrivateKey is the key of the app, RSA in PEM form.
	PrivateKey []byte
	// API is the URL of the API. JWTs are sent only there.
	API *url.URL
	// CABundle has the authorities that the API's certificate is verified with, instead of those of the system; it may be empty.
	CABundle []byte
	// Repository is the repository that tokens are limited to, as owner/name.
	Repository string
	// PullRequests requests the permission to write pull requests, in addition to that to write contents.
	PullRequests bool
}

var _ Issuer = &GitHubApp{}

func (a *GitHubApp) identity() string {
	return fmt.Sprintf("github %q %q %q %q %q %q %q %t", a.AppID, a.InstallationID, a.Owner, a.PrivateKey, a.API.String(), a.CABundle,
		a.Repository, a.PullRequests)
}

// Check returns an error if the private key cannot be used.
func (a *GitHubApp) Check() error {
	_, err := a.key()
	return err
}

func (a *GitHubApp) key() (*rsa.PrivateKey, error) {
	if len(a.PrivateKey) > maxAppKey {
		return nil, failed(Invalid, "it is larger than %d bytes", maxAppKey)
	}
	if block, _ := pem.Decode(a.PrivateKey); block != nil {
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(*rsa.PrivateKey); err == nil && ok {
			return key, nil
		}
	}
	return nil, failed(Invalid, "it is not an RSA private key in PEM form")
}

// issue requests an installation token.
func (a *GitHubApp) issue(ctx context.Context, via route) (issued, error) {
	assertion, err := a.assertion(via.now())
	if err != nil {
		return issued{}, err
	}
	api, err := newEndpoint(via, a.API, a.CABundle, assertion)
	if err != nil {
		return issued{}, err
	}
	defer api.client.Close()
	call := gitHubCall{a, api, assertion}
	installation := a.InstallationID
	if installation == "" {
		if installation, err = call.findInstallation(ctx); err != nil {
			return issued{}, err
		}
	}
	return call.requestToken(ctx, installation)
}

// assertion returns the JWT with which the app identifies itself.
func (a *GitHubApp) assertion(now time.Time) (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	issuedAt := now.Add(-jwtBackdate)
	claims, err := json.Marshal(struct {
		Issuer    string `json:"iss"`
		IssuedAt  int64  `json:"iat"`
		ExpiresAt int64  `json:"exp"`
	}{a.AppID, issuedAt.Unix(), issuedAt.Add(jwtLifetime).Unix()})
	if err != nil {
		return "", failed(Invalid, "the ID of the app cannot be encoded")
	}
	encode := base64.RawURLEncoding.EncodeToString
	unsigned := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(unsigned))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", failed(Invalid, "the private key of the app cannot sign")
	}
	return unsigned + "." + encode(signature), nil
}

// gitHubCall is one exchange with GitHub's API.
type gitHubCall struct {
	app       *GitHubApp
	api       *endpoint
	assertion string
}

// do makes a request with the JWT. elements are those of the path below the URL of the API.
func (c gitHubCall) do(ctx context.Context, method string, body any, elements ...string) (*response, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, failed(Invalid, "%v", err)
		}
	}
	return c.api.do(ctx, method, c.app.API.JoinPath(elements...), map[string]string{
		"Authorization": "Bearer " + c.assertion, "Accept": gitHubAccept, "X-GitHub-Api-Version": gitHubVersion,
	}, content)
}

// findInstallation returns the installation of the owner, which is an organization or a user.
func (c gitHubCall) findInstallation(ctx context.Context) (string, error) {
	var got *response
	for _, accounts := range []string{"orgs", "users"} {
		var err error
		if got, err = c.do(ctx, http.MethodGet, nil, accounts, url.PathEscape(c.app.Owner), "installation"); err != nil {
			return "", err
		}
		if got.Status != http.StatusNotFound {
			break
		}
	}
	if got.Status == http.StatusNotFound {
		return "", failed(Refused, "the app %s is not installed for %s at %s%s: install it there, or correct githubAppInstallationOwner or githubAppID",
			c.app.AppID, c.app.Owner, c.api.host, c.said(got))
	}
	if got.Status != http.StatusOK {
		return "", c.refusal(got, "")
	}
	var installation struct {
		ID int64 `json:"id"`
	}
	if err := c.api.decode(got, &installation); err != nil {
		return "", err
	}
	return strconv.FormatInt(installation.ID, 10), nil
}

// permissions are those that the token is limited to.
func (a *GitHubApp) permissions() map[string]string {
	permissions := map[string]string{"contents": "write"}
	if a.PullRequests {
		permissions["pull_requests"] = "write"
	}
	return permissions
}

func (c gitHubCall) requestToken(ctx context.Context, installation string) (issued, error) {
	_, name, _ := strings.Cut(c.app.Repository, "/")
	got, err := c.do(ctx, http.MethodPost, map[string]any{"repositories": []string{name}, "permissions": c.app.permissions()},
		"app", "installations", url.PathEscape(installation), "access_tokens")
	if err != nil {
		return issued{}, err
	}
	if got.Status != http.StatusCreated {
		return issued{}, c.refusal(got, installation)
	}
	var token struct {
		Token        string    `json:"token"`
		ExpiresAt    time.Time `json:"expires_at"`
		Repositories []struct {
			FullName string `json:"full_name"`
		} `json:"repositories"`
	}
	if err := c.api.decode(got, &token); err != nil {
		return issued{}, err
	}
	for _, repository := range token.Repositories {
		if !strings.EqualFold(repository.FullName, c.app.Repository) {
			return issued{}, failed(Refused, "the installation %s gives access to %s, but spec.repoUrl names %s: correct %s", installation,
				c.api.quote(repository.FullName), c.app.Repository, c.app.installationKey())
		}
	}
	// The clocks of the two sides may differ, so only the difference of GitHub's own times counts.
	lifetime := token.ExpiresAt.Sub(c.api.now().Add(got.skew))
	if token.Token == "" || lifetime <= 0 {
		return issued{}, failed(Unreachable, "%s answers without a token that is valid", c.api.host)
	}
	return issued{token.Token, lifetime}, nil
}

// installationKey is the key of the Secret that selects the installation.
func (a *GitHubApp) installationKey() string {
	if a.InstallationID == "" {
		return "githubAppInstallationOwner"
	}
	return "githubAppInstallationID"
}

// refusal returns the error for a response other than the expected one. The installation is empty before it is known.
func (c gitHubCall) refusal(got *response, installation string) error {
	app, host, said := c.app, c.api.host, c.said(got)
	switch {
	case got.isTemporary():
		return failed(Unreachable, "%s cannot answer now (%s)%s", host, status(got.Status), said)
	case got.Status == http.StatusUnauthorized && got.skew.Abs() > jwtBackdate:
		return failed(Refused, "%s refuses the time of the request%s: the clock of this server is %s that of %s; synchronize it",
			host, said, difference(got.skew), host)
	case got.Status == http.StatusUnauthorized:
		return failed(Refused, "%s refuses the key of the app %s%s: correct githubAppID, or generate a new key of the app for githubAppPrivateKey",
			host, app.AppID, said)
	case got.Status == http.StatusForbidden:
		return failed(Refused, "%s refuses the installation %s of the app %s%s: if it is suspended, unsuspend it in the settings of its owner",
			host, cmp.Or(installation, "of "+app.Owner), app.AppID, said)
	case got.Status == http.StatusNotFound:
		return failed(Refused, "%s has no installation %s of the app %s%s: it was removed, or githubAppInstallationID or githubAppID is wrong",
			host, installation, app.AppID, said)
	case got.Status == http.StatusUnprocessableEntity:
		return failed(Refused, "the installation %s of the app %s does not grant %s for %s%s: add the repository to the installation, and accept "+
			"the permissions of the app", installation, app.AppID, app.permissionText(), app.Repository, said)
	}
	return failed(Unreachable, "%s answers with %s%s: is it the API of GitHub?", host, status(got.Status), said)
}

func (a *GitHubApp) permissionText() string {
	if a.PullRequests {
		return "contents: write and pull_requests: write"
	}
	return "contents: write"
}

// said returns what the API says in an error, in parentheses; empty if it says nothing.
func (c gitHubCall) said(got *response) string {
	var body struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(got.Body, &body) != nil || body.Message == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", c.api.quote(body.Message))
}

// difference describes how far our clock is from that of a server that is ahead by skew.
func difference(skew time.Duration) string {
	if skew < 0 {
		return (-skew).Round(time.Second).String() + " ahead of"
	}
	return skew.Round(time.Second).String() + " behind"
}
