// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// azureDevOpsScope is the scope of Azure DevOps: the ID of its application in Entra ID, with all rights of the identity.
	azureDevOpsScope = "499b84ac-1321-427f-aa17-267ca6975798/.default"
	// assertionType says that a JWT replaces the client's secret (RFC 7523, section 2.2).
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// maxAssertion bounds the token of the ServiceAccount in bytes.
	maxAssertion = 64 << 10
)

// AzureWorkload obtains tokens for Azure DevOps in exchange for a token of the server's ServiceAccount.
type AzureWorkload struct {
	ClientID, TenantID string
	// Authority is the URL of Entra ID. The token of the ServiceAccount is sent only there.
	Authority *url.URL
	// TokenFile has the token of the ServiceAccount. The kubelet replaces it, so it is read for each exchange.
	TokenFile string
}

var _ Issuer = &AzureWorkload{}

func (a *AzureWorkload) identity() string {
	return fmt.Sprintf("azure %q %q %q %q", a.ClientID, a.TenantID, a.Authority.String(), a.TokenFile)
}

// issue exchanges the token of the ServiceAccount.
func (a *AzureWorkload) issue(ctx context.Context, via route) (issued, error) {
	assertion, err := a.assertion()
	if err != nil {
		return issued{}, err
	}
	authority, err := newEndpoint(via, a.Authority, nil, assertion)
	if err != nil {
		return issued{}, err
	}
	defer authority.client.Close()
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {a.ClientID}, "scope": {azureDevOpsScope},
		"client_assertion_type": {assertionType}, "client_assertion": {assertion},
	}
	got, err := authority.do(ctx, http.MethodPost, a.Authority.JoinPath(url.PathEscape(a.TenantID), "oauth2", "v2.0", "token"),
		map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}, []byte(form.Encode()))
	if err != nil {
		return issued{}, err
	}
	return readEntraToken(authority, got)
}

func (a *AzureWorkload) assertion() (string, error) {
	file, err := os.Open(a.TokenFile)
	if err != nil {
		return "", failed(Refused, "the token of the server's ServiceAccount (AZURE_FEDERATED_TOKEN_FILE) cannot be read: %v", unwrapped(err))
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxAssertion))
	if err != nil || len(content) == 0 {
		return "", failed(Refused, "the token of the server's ServiceAccount (AZURE_FEDERATED_TOKEN_FILE) is empty or cannot be read")
	}
	return strings.TrimSpace(string(content)), nil
}

// unwrapped returns the reason of an error of a file without its path.
func unwrapped(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func readEntraToken(authority *endpoint, got *response) (issued, error) {
	var body struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if got.isTemporary() {
		return issued{}, failed(Unreachable, "%s cannot answer now (%s)", authority.host, status(got.Status))
	}
	if err := authority.decode(got, &body); err != nil {
		return issued{}, err
	}
	if got.Status != http.StatusOK {
		line, _, _ := strings.Cut(body.Description, "\n")
		return issued{}, failed(Refused, "%s refuses the workload identity of the server (%s): %s", authority.host,
			authority.quote(body.Error), authority.quote(strings.TrimSpace(line)))
	}
	if body.AccessToken == "" || body.ExpiresIn <= 0 {
		return issued{}, failed(Unreachable, "%s answers without a token that is valid", authority.host)
	}
	return issued{body.AccessToken, time.Duration(min(body.ExpiresIn, int64(maxLifetime/time.Second))) * time.Second}, nil
}
