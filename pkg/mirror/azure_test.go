// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/test/testkit/logintest"
)

// environmentOf is the environment that the webhook gives to the Pods of a workload.
func environmentOf(a *logintest.Azure, authority string) map[string]string {
	return map[string]string{
		"AZURE_CLIENT_ID": a.ClientID, "AZURE_TENANT_ID": a.TenantID, "AZURE_AUTHORITY_HOST": authority + "/",
		"AZURE_FEDERATED_TOKEN_FILE": a.TokenFile(a.Subject),
	}
}

// azureRepository is a GitRepoConfig of namespace shop.
func azureRepository(url string) *v1alpha1.GitRepoConfig {
	return &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}, Spec: v1alpha1.GitRepoConfigSpec{
		RepoURL: url, Provider: v1alpha1.ProviderAzure,
	}}
}

func TestAzureIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		path    string
		unset   string
		subject string
		reason  string
		message string
	}{
		"namespace":                {allowed: []string{"shop"}},
		"namespace, organization":  {allowed: []string{"other", "shop/contoso"}},
		"organization in capitals": {allowed: []string{"shop/Contoso"}, path: "/CONTOSO/shop/_git/shop.git"},
		"none": {
			reason: v1alpha1.ReasonIdentityNotAllowed, message: "spec.provider: namespace shop may not use the identity of the server for the " +
				"organization contoso; the operator of the server can allow it with --git-azure-namespaces=shop/contoso",
		},
		"other namespace": {
			allowed: []string{"shop-2", "sho", "other/contoso"}, reason: v1alpha1.ReasonIdentityNotAllowed, message: "may not use the identity",
		},
		"other organization": {
			allowed: []string{"shop/contoso"}, path: "/fabrikam/shop/_git/shop", reason: v1alpha1.ReasonIdentityNotAllowed, message: "organization fabrikam",
		},
		"path to another organization": {
			allowed: []string{"shop/contoso"}, path: "/contoso/../fabrikam/shop", reason: v1alpha1.ReasonURLRefused, message: "spec.repoUrl",
		},
		"escaped path to another organization": {
			allowed: []string{"shop/contoso"}, path: "/contoso/%2e%2e/fabrikam/shop", reason: v1alpha1.ReasonURLRefused, message: "spec.repoUrl",
		},
		"no webhook": {
			allowed: []string{"shop"}, unset: "AZURE_TENANT_ID", reason: v1alpha1.ReasonAuthenticationFailed,
			message: "the server has no workload identity: AZURE_TENANT_ID is not set",
		},
		"not trusted": {
			allowed: []string{"shop"}, subject: "system:serviceaccount:x:y", reason: v1alpha1.ReasonAuthenticationFailed,
			message: "AADSTS700213: No matching federated identity record",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := logintest.NewAzure(t, time.Now, strippedGit(t))
			address := serveHTTP(t, a)
			environment := environmentOf(a, address)
			if test.subject != "" {
				environment["AZURE_FEDERATED_TOKEN_FILE"] = a.TokenFile(test.subject)
			}
			delete(environment, test.unset)
			if test.path == "" {
				test.path = "/contoso/shop/_git/shop.git"
			}
			got := reasonOf(pushOnce(t, azureRepositories(t, test.allowed, address, environment), azureRepository(address+test.path), name),
				v1alpha1.ReasonPushFailed)
			if got.Code != test.reason || !strings.Contains(got.Message, test.message) {
				t.Errorf("%s: %q, want %s: %q", got.Code, got.Message, test.reason, test.message)
			}
			hides(t, got.Message)
		})
	}
}

// strippedGit serves repositories below any project of an organization.
func strippedGit(t *testing.T) http.Handler {
	t.Helper()
	git := newGitHandler(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, r.URL.Path, _ = strings.Cut(r.URL.Path, "/_git")
		git.ServeHTTP(w, r)
	})
}

// azureRepositories has the identity of an environment, for the URL of Azure DevOps.
func azureRepositories(t *testing.T, allowed []string, url string, environment map[string]string) *repositories {
	t.Helper()
	identity, err := NewAzureIdentity(allowed, []string{url}, true, func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return &repositories{
		cluster: fake.NewClientset(), now: time.Now, network: onThisHost(t), tokens: gittoken.New(onThisHost(t), time.Now), allowInsecure: true,
		azure: identity,
	}
}

// TestTokenOfTheServerStaysAtAzure has a user name hosts of their own, and Azure redirect there. All connections lead to a server of the
// user, which fails the test if it gets any.
func TestTokenOfTheServerStaysAtAzure(t *testing.T) {
	var requests atomic.Int32
	hostile := serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	redirecting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, hostile+r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
	})
	a := logintest.NewAzure(t, time.Now, redirecting)
	address := serveHTTP(t, a)
	host := strings.TrimPrefix(hostile, "http://")
	r := azureRepositories(t, []string{"shop"}, address, environmentOf(a, address))
	for _, url := range []string{
		hostile + "/contoso/shop/_git/shop", "https://" + host + "/contoso/shop", "https://dev.azure.com@" + host + "/contoso/shop",
		"https://dev.azure.com." + host + "/contoso/shop", "https://dev.azure.com:" + host + "/contoso/shop",
		"http://dev.azure.com/contoso/shop/_git/shop", "https://dev.azure.com:444/contoso/shop", "https://dev.azure.com",
		"https://visualstudio.com/contoso/shop", "https://evil.com/.visualstudio.com/contoso", "https://a.b.visualstudio.com/shop",
		"https://contosovisualstudio.com/shop", "https://contoso.visualstudio.com.evil.com/shop", "https://contoso.visualstudio.com:444/shop",
		"https://evil.com#.visualstudio.com/contoso", `https://evil.com\.visualstudio.com/contoso`, "https://evil.com?.visualstudio.com/contoso",
		"ssh://git@ssh.dev.azure.com/v3/contoso/shop/shop", "git@ssh.dev.azure.com:v3/contoso/shop/shop", "file:///dev.azure.com/contoso/shop",
	} {
		if got := reasonOf(pushOnce(t, r, azureRepository(url), "x"), ""); got.Code != v1alpha1.ReasonURLRefused {
			t.Errorf("%s: %s: %s", url, got.Code, got.Message)
		}
	}
	err := pushOnce(t, r, azureRepository(address+"/contoso/shop/_git/shop"), "x")
	if got := reasonOf(err, ""); !strings.Contains(got.Message, "redirects to another host") {
		t.Errorf("redirect: %s: %s", got.Code, got.Message)
	}
	if requests.Load() > 0 {
		t.Errorf("%d requests to the server of the user", requests.Load())
	}
}

// TestURLsOfAzure checks that the public URLs are connected to, and with TLS only.
func TestURLsOfAzure(t *testing.T) {
	for _, url := range []string{"https://dev.azure.com/contoso/shop/_git/shop", "https://contoso.visualstudio.com/shop/_git/shop"} {
		a := logintest.NewAzure(t, time.Now, nil)
		address := serveHTTP(t, a)
		r := azureRepositories(t, []string{"shop/contoso"}, address, environmentOf(a, address))
		r.network = &proxy.Network{Direct: func(_ context.Context, _, address string) (net.Conn, error) {
			return nil, errors.New("connects to " + address)
		}}
		want := fmt.Sprintf("connects to %s:443", strings.Split(url, "/")[2])
		if err := pushOnce(t, r, azureRepository(url), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestInvalidAzureIdentities(t *testing.T) {
	for name, test := range map[string]struct {
		allowed, urls []string
		authority     string
		insecure      bool
		want          string
	}{
		"all namespaces":    {allowed: []string{"*"}, want: `--git-azure-namespaces: "*" must be NAMESPACE or NAMESPACE/ORGANIZATION`},
		"all organizations": {allowed: []string{"shop/*"}, want: "without wildcards"},
		"no organization":   {allowed: []string{"shop/"}, want: "without wildcards"},
		"authority over http": {
			allowed: []string{"shop"}, authority: "http://login.example.com", want: "AZURE_AUTHORITY_HOST must be an https URL",
		},
		"URL over http":   {urls: []string{"http://azure.example.com"}, want: "--git-azure-urls"},
		"URL with a path": {urls: []string{"https://azure.example.com/x"}, want: "without a path"},
		"host only":       {urls: []string{"azure.example.com"}, insecure: true, want: "--git-azure-urls"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewAzureIdentity(test.allowed, test.urls, test.insecure, func(name string) string {
				return map[string]string{"AZURE_AUTHORITY_HOST": test.authority}[name]
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
