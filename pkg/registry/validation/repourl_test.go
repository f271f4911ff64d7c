// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// secret stands for a credential in every URL below; no error may show it.
const secret = "s3cret"

func TestRepoURL(t *testing.T) {
	insecure := validation.Options{AllowInsecureURLs: true}
	tests := []struct {
		url     string
		options validation.Options
		says    string
	}{
		{url: "https://git.example.com/team/repo.git"},
		{url: "https://git.example.com:8443/repo"},
		{url: "https://[2001:db8::1]/repo"},
		{url: "ssh://git@git.example.com/team/repo.git"},
		{url: "ssh://git.example.com:2222/repo"},
		{url: "git@git.example.com:team/repo.git"},
		{url: "git@git.example.com:/srv/repo.git"},
		{url: "org-123@git.example.com:repo"},
		{url: "http://127.0.0.1:3000/repo", options: insecure},
		{url: "file:///srv/git/repo.git", options: insecure},

		{url: "", says: "https://host/path"},
		{url: "http://git.example.com/repo", says: "--git-allow-insecure"},
		{url: "file:///srv/git/repo.git", says: "--git-allow-insecure"},
		{url: "file://host/srv/git/repo.git", options: insecure, says: "without a host"},
		{url: "git://git.example.com/repo", says: "must be https://host/path"},
		{url: "ext::sh -c whoami", says: "spaces"},
		{url: "ext::whoami", says: "must be https://host/path"},
		{url: "/srv/git/repo.git", says: "must be https://host/path"},
		{url: "git.example.com/repo", says: "must be https://host/path"},
		{url: "https://", says: "must name a host"},
		{url: "https://git.example.com", says: "must name a repository"},
		{url: "https://git.example.com/", says: "must name a repository"},
		{url: "https://git.example.com/repo\n", says: "control characters"},
		{url: "https://git.example.com/%zz", says: "must be https://host/path"},
		{url: "https://git.example.com/repo?token=" + secret, says: "query"},
		{url: "https://git.example.com/repo#" + secret, says: "fragment"},
		{url: "https://" + secret + "@git.example.com/repo", says: "secretRef"},
		{url: "https://bot:" + secret + "@git.example.com/repo", says: "secretRef"},
		{url: "https://bot:" + secret + "@git.example.com/%zz", says: "must be https://host/path"},
		{url: "https://bot:" + secret + "/@git.example.com:x/repo", says: "must be https://host/path"},
		{url: "ssh://git:" + secret + "@git.example.com/repo", says: "secretRef"},
		{url: "ssh://-oProxyCommand=x/repo", says: "must name a host"},
		{url: "ssh://-oProxyCommand=x@git.example.com/repo", says: "user that begins with -"},
		{url: "ssh://git@git.example.com/-u", says: "must name a repository"},
		{url: "git:" + secret + "@git.example.com:repo", says: "must be https://host/path"},
		{url: "-oProxyCommand=x@git.example.com:repo", says: "must be https://host/path"},
		{url: "git@-oProxyCommand=x:repo", says: "must be https://host/path"},
		{url: "git@git.example.com:-u", says: "must be https://host/path"},
		{url: "https://git.example.com/" + strings.Repeat("a", 2048), says: "2048"},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			errs := validation.ValidateGitRepoConfig(with(repository(), func(c *configbutler.GitRepoConfig) {
				c.Spec.RepoURL = test.url
			}), test.options)
			if test.says == "" {
				change[struct{}]{}.check(t, errs)
				return
			}
			change[struct{}]{path: "spec.repoUrl", says: test.says}.check(t, errs)
			if strings.Contains(errs[0].Error(), secret) {
				t.Errorf("the error shows a credential: %v", errs[0])
			}
		})
	}
}

func TestAnInsecureURLThatStaysCanBeEditedAround(t *testing.T) {
	insecure := func() *configbutler.GitRepoConfig {
		return with(repository(), func(c *configbutler.GitRepoConfig) { c.Spec.RepoURL = "http://git.example.com/repo" })
	}
	t.Run("another field changes", func(t *testing.T) {
		changed := with(insecure(), func(c *configbutler.GitRepoConfig) { c.Spec.AllowedBranches = nil })
		change[struct{}]{}.check(t, validation.ValidateGitRepoConfigUpdate(changed, insecure(), validation.Options{}))
	})
	t.Run("the URL changes", func(t *testing.T) {
		changed := with(insecure(), func(c *configbutler.GitRepoConfig) { c.Spec.RepoURL = "http://git.example.com/other" })
		change[struct{}]{path: "spec.repoUrl", says: "--git-allow-insecure"}.check(t,
			validation.ValidateGitRepoConfigUpdate(changed, insecure(), validation.Options{}))
	})
}
