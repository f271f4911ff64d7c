// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
)

const (
	// azureHost and azureDomain are the hosts of Azure DevOps. The organization is the first part of the path at the first, and of the
	// host in the second.
	azureHost   = "dev.azure.com"
	azureDomain = ".visualstudio.com"
	// azureAuthority is Entra ID in the public cloud.
	azureAuthority = "https://login.microsoftonline.com/"
)

// azureOrganization matches the name of an organization of Azure DevOps.
var azureOrganization = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,48}[A-Za-z0-9])?$`)

// AzureIdentity is the workload identity of the server at Azure, and who may use it. It has the server's own rights there, so it is used
// only for the namespaces and organizations that the operator names. Nil is used for none.
type AzureIdentity struct {
	workload gittoken.AzureWorkload
	// missing is the environment variable that the workload lacks, empty if it is complete.
	missing string
	allowed []azureGrant
	// origins are further URLs of Azure DevOps, without a path.
	origins []string
}

// azureGrant allows a namespace to use the identity for an organization, or for all if it is empty.
type azureGrant struct{ namespace, organization string }

// NewAzureIdentity returns the identity in the environment, in the variables that Azure's workload identity webhook sets. allowed are the
// values of --git-azure-namespaces: NAMESPACE or NAMESPACE/ORGANIZATION. urls are those of --git-azure-urls: URLs of Azure DevOps in
// addition to the public ones. With insecure, http is allowed for Entra ID.
func NewAzureIdentity(allowed, urls []string, insecure bool, environment func(string) string) (*AzureIdentity, error) {
	a := &AzureIdentity{workload: gittoken.AzureWorkload{
		ClientID: environment("AZURE_CLIENT_ID"), TenantID: environment("AZURE_TENANT_ID"),
		TokenFile: environment("AZURE_FEDERATED_TOKEN_FILE"),
	}}
	for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"} {
		if a.missing == "" && environment(name) == "" {
			a.missing = name
		}
	}
	authority, err := url.Parse(cmp.Or(environment("AZURE_AUTHORITY_HOST"), azureAuthority))
	if len(allowed) > 0 && (err != nil || !isSecure(authority, insecure)) {
		return nil, fmt.Errorf("AZURE_AUTHORITY_HOST must be an https URL, such as %s", azureAuthority)
	}
	a.workload.Authority = authority
	for _, entry := range allowed {
		grant, err := parseGrant(entry)
		if err != nil {
			return nil, fmt.Errorf("--git-azure-namespaces: %w", err)
		}
		a.allowed = append(a.allowed, grant)
	}
	for _, entry := range urls {
		origin, err := url.Parse(entry)
		if err != nil || !isSecure(origin, insecure) || strings.Trim(origin.Path, "/") != "" {
			return nil, fmt.Errorf("--git-azure-urls: %q must be an https URL without a path, such as https://azure.example.com", entry)
		}
		a.origins = append(a.origins, originOf(origin))
	}
	return a, nil
}

func parseGrant(entry string) (azureGrant, error) {
	namespace, organization, limited := strings.Cut(entry, "/")
	if len(content.IsDNS1123Label(namespace)) > 0 || limited && !azureOrganization.MatchString(organization) {
		return azureGrant{}, fmt.Errorf("%q must be NAMESPACE or NAMESPACE/ORGANIZATION, without wildcards", entry)
	}
	return azureGrant{namespace, strings.ToLower(organization)}, nil
}

// isSecure reports whether a URL has a host and uses https, or http if insecure is set, and has no more than a path.
func isSecure(u *url.URL, insecure bool) bool {
	return (u.Scheme == "https" || insecure && u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// originOf returns the scheme and the host of a URL.
func originOf(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// credentials returns those for a repository of a namespace, with the tokens of the cache.
func (a *AzureIdentity) credentials(tokens *gittoken.Tokens, namespace, repository string) (gitrepo.Credentials, error) {
	if a == nil {
		a = &AzureIdentity{}
	}
	organization, ok := a.organization(repository)
	switch {
	case !ok:
		return gitrepo.Credentials{}, refused(v1alpha1.ReasonURLRefused, "spec.repoUrl: the identity of the server is used only for "+
			"https://%s/ORGANIZATION/... and https://ORGANIZATION%s/..., and for URLs that the server's --git-azure-urls allows", azureHost, azureDomain)
	case !a.allows(namespace, organization):
		return gitrepo.Credentials{}, refused(v1alpha1.ReasonIdentityNotAllowed, "spec.provider: namespace %s may not use the identity of the "+
			"server for the organization %s; the operator of the server can allow it with --git-azure-namespaces=%s/%s",
			namespace, organization, namespace, organization)
	case a.missing != "":
		return gitrepo.Credentials{}, refused(v1alpha1.ReasonAuthenticationFailed, "the server has no workload identity: %s is not set; the "+
			"operator of the server has to label its Pods azure.workload.identity/use: \"true\" and annotate its ServiceAccount", a.missing)
	}
	return gitrepo.Credentials{Tokens: tokenSource{tokens.Source(&a.workload, nil)}}, nil
}

// organization returns the organization of a URL of Azure DevOps, in lower case; false for every other URL.
func (a *AzureIdentity) organization(repository string) (string, bool) {
	u, err := url.Parse(repository)
	if err != nil || !isSecure(u, true) || slices.ContainsFunc(strings.Split(u.Path, "/"), isRelative) {
		return "", false
	}
	host := strings.ToLower(u.Host)
	inPath, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	inHost, isDomain := strings.CutSuffix(host, azureDomain)
	organization := ""
	switch {
	case slices.Contains(a.origins, originOf(u)), u.Scheme == "https" && host == azureHost:
		organization = inPath
	case u.Scheme == "https" && isDomain:
		organization = inHost
	}
	return strings.ToLower(organization), azureOrganization.MatchString(organization)
}

// isRelative reports whether an element of a path can lead to another organization. Servers also resolve what was escaped.
func isRelative(element string) bool {
	return element == "." || element == ".." || strings.ContainsAny(element, `\%?#`)
}

// allows reports whether the operator allows a namespace to use the identity for an organization.
func (a *AzureIdentity) allows(namespace, organization string) bool {
	return slices.ContainsFunc(a.allowed, func(g azureGrant) bool {
		return g.namespace == namespace && (g.organization == "" || g.organization == organization)
	})
}
