// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
)

func TestAddresses(t *testing.T) {
	const pulls = "/repos/acme/clusters/pulls/1"
	for name, test := range map[string]struct {
		kind     githost.Kind
		repo     string
		api      string
		want     string
		wellKnow bool
	}{
		"github.com":      {githost.GitHub, "https://github.com/acme/clusters.git", "", "https://api.github.com" + pulls, true},
		"credentials":     {githost.GitHub, "https://user:secret@GitHub.com/acme/clusters/", "", "https://api.github.com" + pulls, true},
		"no TLS":          {githost.GitHub, "http://github.com/acme/clusters", "", "https://api.github.com" + pulls, true},
		"SSH":             {githost.GitHub, "git@github.com:acme/clusters.git", "", "https://api.github.com" + pulls, true},
		"SSH, port 443":   {githost.GitHub, "ssh://git@ssh.github.com:443/acme/clusters.git", "", "https://api.github.com" + pulls, true},
		"GitHub, tenant":  {githost.GitHub, "https://acme.ghe.com/acme/clusters", "", "https://api.acme.ghe.com" + pulls, true},
		"Enterprise":      {githost.GitHub, "https://git.example:8443/acme/clusters", "", "https://git.example:8443/api/v3" + pulls, false},
		"Enterprise, SSH": {githost.GitHub, "ssh://git@git.example:2222/acme/clusters", "", "https://git.example/api/v3" + pulls, false},
		"API":             {githost.GitHub, "https://git.example/acme/clusters", "https://api.example/v3/", "https://api.example/v3" + pulls, false},
		"GitHub, escaped": {githost.GitHub, "https://git.example/a%2Bb/c%23d", "", "https://git.example/api/v3/repos/a+b/c%23d/pulls/1", false},
		"Gitea":           {githost.Gitea, "https://codeberg.org/acme/clusters", "", "https://codeberg.org/api/v1" + pulls, true},
		"Gitea, plain":    {githost.Gitea, "http://gitea.svc:3000/acme/clusters", "", "http://gitea.svc:3000/api/v1" + pulls, false},
		"Gitea, IPv6":     {githost.Gitea, "https://[2001:db8::1]:3000/acme/clusters", "", "https://[2001:db8::1]:3000/api/v1" + pulls, false},
		"Gitea, below a path": {
			githost.Gitea, "https://x.example/git/acme/clusters", "https://x.example/git/api/v1", "https://x.example/git/api/v1" + pulls, false,
		},
		"GitLab": {
			githost.GitLab, "https://gitlab.com/acme/platform/clusters.git", "",
			"https://gitlab.com/api/v4/projects/acme%2Fplatform%2Fclusters/merge_requests/1", true,
		},
		"GitLab, SSH": {
			githost.GitLab, "git@altssh.gitlab.com:acme/clusters.git", "", "https://gitlab.com/api/v4/projects/acme%2Fclusters/merge_requests/1", true,
		},
		"GitLab, below a path": {
			githost.GitLab, "https://x.example/gitlab/acme/clusters", "https://x.example/gitlab/api/v4",
			"https://x.example/gitlab/api/v4/projects/acme%2Fclusters/merge_requests/1", false,
		},
		"GitLab, group of the same name": {
			githost.GitLab, "https://x.example/gitlab/acme/clusters", "",
			"https://x.example/api/v4/projects/gitlab%2Facme%2Fclusters/merge_requests/1", false,
		},
		"Azure DevOps": {githost.AzureDevOps, "https://acme@dev.azure.com/acme/Team%20One/_git/clusters", "", azureWant, true},
		"Azure DevOps, SSH": {
			githost.AzureDevOps, "git@ssh.dev.azure.com:v3/acme/Team%20One/clusters", "", azureWant, true,
		},
		"Azure DevOps, old SSH": {
			githost.AzureDevOps, "acme@vs-ssh.visualstudio.com:v3/acme/Team%20One/clusters", "", azureWant, true,
		},
		"Azure DevOps, old": {githost.AzureDevOps, "https://acme.visualstudio.com/DefaultCollection/Team%20One/_git/clusters", "", azureWant, true},
		"Azure DevOps, one name": {
			githost.AzureDevOps, "https://dev.azure.com/acme/_git/apps", "",
			"https://dev.azure.com/acme/apps/_apis/git/repositories/apps/pullrequests/1?api-version=7.1", true,
		},
		"Azure DevOps Server": {
			githost.AzureDevOps, "https://tfs.example/tfs/Default%20Collection/apps/_git/c.d", "",
			"https://tfs.example/tfs/Default%20Collection/apps/_apis/git/repositories/c.d/pullrequests/1?api-version=7.1", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			noted := errors.New("noted")
			host, err := githost.New(githost.Options{
				Kind: test.kind, RepoURL: test.repo, APIURL: test.api, Token: token(githost.Token{Value: "x"}),
				Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					got = r.URL.String()
					return nil, noted
				})},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = host.Get(t.Context(), 1)
			wantError(t, err, githost.Unreachable)
			if got != test.want {
				t.Errorf("the request is to %s, want %s", got, test.want)
			}
			kind, ok := githost.KindOf(test.repo)
			if ok != test.wellKnow || ok && kind != test.kind {
				t.Errorf("KindOf returns %q, %t", kind, ok)
			}
		})
	}
}

const azureWant = "https://dev.azure.com/acme/Team%20One/_apis/git/repositories/clusters/pullrequests/1?api-version=7.1"

func TestInvalidAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		kind      githost.Kind
		repo, api string
	}{
		"empty":                  {githost.GitHub, "", ""},
		"no URL":                 {githost.GitHub, "https://%", ""},
		"a file":                 {githost.GitHub, "/var/git/clusters", ""},
		"a scheme of files":      {githost.GitHub, "file:///acme/clusters", ""},
		"another scheme":         {githost.GitHub, "git://github.com/acme/clusters", ""},
		"no owner":               {githost.GitHub, "https://github.com/clusters", ""},
		"no path":                {githost.GitHub, "https://github.com", ""},
		"a way up":               {githost.GitHub, "https://github.com/../clusters", ""},
		"an escaped way up":      {githost.GitLab, "https://gitlab.com/acme/%2e%2e/clusters", ""},
		"an empty part":          {githost.GitLab, "https://gitlab.com/acme//clusters", ""},
		"below a path":           {githost.Gitea, "https://x.example/git/acme/clusters", ""},
		"GitLab, no group":       {githost.GitLab, "https://gitlab.com/clusters", ""},
		"Azure, no repository":   {githost.AzureDevOps, "https://dev.azure.com/acme/project", ""},
		"Azure, no organization": {githost.AzureDevOps, "https://dev.azure.com/_git/clusters", ""},
		"Azure, a slash":         {githost.AzureDevOps, "https://dev.azure.com/acme/a%252Fb/_git/clusters", ""},
		"Azure, SSH":             {githost.AzureDevOps, "git@ssh.dev.azure.com:acme/project/clusters", ""},
		"no kind":                {"", "https://github.com/acme/clusters", ""},
		"API of another scheme":  {githost.GitHub, "https://github.com/acme/clusters", "ftp://x"},
		"API with a user":        {githost.GitHub, "https://github.com/acme/clusters", "https://a:b@x"},
		"API with a query":       {githost.GitHub, "https://github.com/acme/clusters", "https://x?a=b"},
		"API without a host":     {githost.GitHub, "https://github.com/acme/clusters", "https:///api"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := githost.New(githost.Options{
				Kind: test.kind, RepoURL: test.repo, APIURL: test.api, Client: http.DefaultClient, Token: token(githost.Token{Value: "x"}),
			})
			wantError(t, err, githost.Invalid)
		})
	}
	if _, err := githost.New(githost.Options{Kind: githost.GitHub, RepoURL: "https://github.com/acme/clusters"}); err == nil {
		t.Error("a host without a client is accepted")
	}
}
