// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gittoken_test

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/logintest"
)

// azure is Entra ID, and a workload that it trusts.
type azure struct {
	*logintest.Azure
	clock    *testkit.Clock
	workload gittoken.AzureWorkload
	tokens   *gittoken.Tokens
}

func newAzure(t *testing.T) *azure {
	t.Helper()
	clock := testkit.NewClock(t)
	a := &azure{clock: clock, Azure: logintest.NewAzure(t, clock.Now, http.NotFoundHandler())}
	a.workload = gittoken.AzureWorkload{
		ClientID: a.ClientID, TenantID: a.TenantID, Authority: serve(t, a.Azure), TokenFile: a.TokenFile(a.Subject),
	}
	a.tokens = gittoken.New(direct(new(net.Dialer).DialContext), clock.Now)
	return a
}

// token returns the current token of the workload.
func (a *azure) token(t *testing.T) string {
	t.Helper()
	token, err := a.tokens.Source(&a.workload, nil).Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAzureTokensAreRenewed(t *testing.T) {
	a := newAzure(t)
	first := a.token(t)
	a.clock.Advance(1, 54*time.Minute)
	if a.token(t) != first {
		t.Error("renewed too early")
	}
	a.SetUnavailable(true)
	a.clock.Advance(1, time.Minute)
	if a.token(t) != first {
		t.Error("the token is not used although it is valid")
	}
	a.SetUnavailable(false)
	a.clock.Advance(1, time.Minute)
	if a.token(t) == first {
		t.Error("the token was not renewed")
	}
}

func TestAzureRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, a *azure)
		kind   gittoken.Kind
		says   string
	}{
		"other client": {
			func(_ *testing.T, a *azure) { a.workload.ClientID = "x" }, gittoken.Refused,
			"refuses the workload identity of the server (unauthorized_client): AADSTS700016: Application was not found in the directory.",
		},
		"other tenant": {func(_ *testing.T, a *azure) { a.workload.TenantID = "x" }, gittoken.Refused, "Tenant not found."},
		"other ServiceAccount": {
			func(_ *testing.T, a *azure) { a.workload.TokenFile = a.TokenFile("system:serviceaccount:x:y") }, gittoken.Refused,
			"No matching federated identity record",
		},
		"expired": {
			func(_ *testing.T, a *azure) { a.clock.Advance(1, time.Hour) }, gittoken.Refused, "AADSTS700024",
		},
		"token of another cluster": {
			func(t *testing.T, a *azure) { a.workload.TokenFile = newAzure(t).workload.TokenFile }, gittoken.Refused, "malformed: [REDACTED]",
		},
		"no file": {
			func(t *testing.T, a *azure) { a.workload.TokenFile = filepath.Join(t.TempDir(), "x") }, gittoken.Refused,
			"AZURE_FEDERATED_TOKEN_FILE) cannot be read: no such file",
		},
		"unavailable": {func(_ *testing.T, a *azure) { a.SetUnavailable(true) }, gittoken.Unreachable, "cannot answer now (503"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAzure(t)
			test.change(t, a)
			if got := failure(t, a.tokens, &a.workload); got.Kind != test.kind || !strings.Contains(got.Message, test.says) {
				t.Errorf("%d: %s, want %d: %s", got.Kind, got.Message, test.kind, test.says)
			}
		})
	}
}
