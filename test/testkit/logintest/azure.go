// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logintest

import (
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// azureDevOps is the resource of Azure DevOps in Entra ID.
	azureDevOps = "499b84ac-1321-427f-aa17-267ca6975798/.default"
	// exchangeAudience is the audience of tokens of ServiceAccounts for Entra ID.
	exchangeAudience = "api://AzureADTokenExchange"
	entraLifetime    = 3599 * time.Second
)

// Azure is Entra ID with one application, which trusts one ServiceAccount, and Azure DevOps: the endpoint for tokens at /TENANT/oauth2, and
// repositories elsewhere.
//
// learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow, "Third case: Access token request with a federated
// credential"; azure.github.io/azure-workload-identity.
type Azure struct {
	*tokens

	// ClientID and TenantID identify the application, Subject the ServiceAccount that it trusts.
	ClientID, TenantID, Subject string

	t   testing.TB
	now func() time.Time
	key *rsa.PrivateKey
	git http.Handler
	// unavailable is set while Entra ID does not issue tokens.
	unavailable atomic.Bool
}

// NewAzure returns Entra ID and Azure DevOps. now is their clock. git serves the repositories.
func NewAzure(t testing.TB, now func() time.Time, git http.Handler) *Azure {
	t.Helper()
	key, _ := newKey(t)
	return &Azure{
		tokens: newTokens("eyJ0eXAiOiJKV1Qi", now), ClientID: "0a2d1f1e-client", TenantID: "7c9e6679-tenant",
		Subject: "system:serviceaccount:slipstream-system:slipstream", t: t, now: now, key: key, git: git,
	}
}

// TokenFile writes a token of a ServiceAccount to a file, as the kubelet does, and returns its path. Entra ID trusts it if the subject is
// that of the application.
func (a *Azure) TokenFile(subject string) string {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "azure-identity-token")
	content := sign(a.t, a.key, map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": subject, "aud": []string{exchangeAudience},
		"iat": a.now().Unix(), "exp": a.now().Add(time.Hour).Unix(),
	})
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// SetUnavailable has Entra ID answer that it is unavailable.
func (a *Azure) SetUnavailable(unavailable bool) { a.unavailable.Store(unavailable) }

// ServeHTTP serves both.
func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token") {
		a.serveToken(w, r)
		return
	}
	value, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || !a.accepts(value, r.URL.Path) {
		refuse(w, r)
		return
	}
	a.git.ServeHTTP(w, r)
}

func (a *Azure) serveToken(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, description string) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": code, "error_description": description + "\r\nTrace ID: 0", "error_codes": []int{1}})
	}
	if a.unavailable.Load() {
		refuse(http.StatusServiceUnavailable, "temporarily_unavailable", "AADSTS90033: A transient error has occurred.")
		return
	}
	assertion := r.PostFormValue("client_assertion")
	content, err := verify(assertion, &a.key.PublicKey)
	expires, _ := content.integer("exp")
	audience, _ := content["aud"].([]any)
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/"+a.TenantID+"/oauth2/v2.0/token":
		refuse(http.StatusBadRequest, "invalid_request", "AADSTS90002: Tenant not found.")
	case r.PostFormValue("grant_type") != "client_credentials":
		refuse(http.StatusBadRequest, "unsupported_grant_type", "AADSTS70003: The app requested an unsupported grant type.")
	case r.PostFormValue("client_id") != a.ClientID:
		refuse(http.StatusUnauthorized, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
	case r.PostFormValue("scope") != azureDevOps:
		refuse(http.StatusBadRequest, "invalid_scope", "AADSTS70011: The provided value for the input parameter 'scope' is not valid.")
	case r.PostFormValue("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || err != nil:
		// Entra ID does not quote the assertion. A server that does must not make it visible.
		refuse(http.StatusUnauthorized, "invalid_client", "AADSTS50027: JWT token is invalid or malformed: "+assertion)
	case !a.now().Before(time.Unix(expires, 0)):
		refuse(http.StatusUnauthorized, "invalid_client", "AADSTS700024: Client assertion is not within its valid time range.")
	case len(audience) != 1 || audience[0] != exchangeAudience || content["sub"] != a.Subject:
		refuse(http.StatusUnauthorized, "invalid_client",
			"AADSTS700213: No matching federated identity record found for presented assertion subject.")
	default:
		value, _ := a.issue("", entraLifetime, nil)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"token_type": "Bearer", "expires_in": int(entraLifetime.Seconds()), "ext_expires_in": int(entraLifetime.Seconds()), "access_token": value,
		})
	}
}
