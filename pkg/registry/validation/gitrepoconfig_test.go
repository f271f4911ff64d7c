// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func repository() *configbutler.GitRepoConfig {
	return &configbutler.GitRepoConfig{
		ObjectMeta: meta("repository"),
		Spec: configbutler.GitRepoConfigSpec{
			RepoURL:         "https://git.example.com/team/repo.git",
			AllowedBranches: []string{"main", "release/*"},
			SecretRef:       &configbutler.SecretReference{Name: "credentials"},
			Push:            &configbutler.PushPolicy{Interval: &metav1.Duration{Duration: time.Second}, MaxCommits: ptr.To[int32](10)},
			Commit: &configbutler.CommitPolicy{
				Committer: &configbutler.CommitIdentity{Name: "Slipstream", Email: "bot@example.com"},
				Signing:   &configbutler.CommitSigning{SecretRef: configbutler.SecretReference{Name: "key"}, Format: configbutler.SigningFormatSSH},
			},
			WebURLTemplate: "https://git.example.com/team/repo/commit/{sha}",
			AccessPolicy: &configbutler.AccessPolicy{
				NamespacedRules: configbutler.NamespacedRules{Mode: configbutler.AccessModeSameNamespace},
			},
		},
	}
}

func checkRepository(t *testing.T, changes []change[*configbutler.GitRepoConfig]) {
	t.Helper()
	checkChanges(t, repository,
		func(c *configbutler.GitRepoConfig) field.ErrorList {
			return validation.ValidateGitRepoConfig(c, validation.Options{})
		},
		func(c, old *configbutler.GitRepoConfig) field.ErrorList {
			return validation.ValidateGitRepoConfigUpdate(c, old, validation.Options{})
		}, changes)
}

func TestGitRepoConfig(t *testing.T) {
	type config = *configbutler.GitRepoConfig
	checkRepository(t, []change[config]{
		{name: "only a URL", do: func(c config) { c.Spec = configbutler.GitRepoConfigSpec{RepoURL: c.Spec.RepoURL} }},
		{
			name: "a Secret without a name", do: func(c config) { c.Spec.SecretRef.Name = "" },
			path: "spec.secretRef.name", says: "Required",
		},
		{
			name: "a Secret with a name that cannot be", do: func(c config) { c.Spec.SecretRef.Name = "a/b" },
			path: "spec.secretRef.name", says: "RFC 1123",
		},
		{name: "an API of the host", do: func(c config) {
			c.Spec.Host = &configbutler.GitHost{
				Type: configbutler.GitHostGitLab, APIURL: "https://git.example.com/api/v4", SecretRef: &configbutler.SecretReference{Name: "api"},
			}
		}},
		{
			name: "an unknown host", do: func(c config) { c.Spec.Host = &configbutler.GitHost{Type: "Bitbucket"} },
			path: "spec.host.type", says: `"GitHub", "GitLab", "Gitea", "AzureDevOps"`,
		},
		{
			name: "an API in plain text", do: func(c config) { c.Spec.Host = &configbutler.GitHost{APIURL: "http://git.example.com"} },
			path: "spec.host.apiURL", says: "--git-allow-insecure",
		},
		{
			name: "an API with a token", do: func(c config) { c.Spec.Host = &configbutler.GitHost{APIURL: "https://token@git.example.com"} },
			path: "spec.host.apiURL", says: "without credentials",
		},
		{
			name: "a Secret of the host without a name",
			do:   func(c config) { c.Spec.Host = &configbutler.GitHost{SecretRef: &configbutler.SecretReference{}} },
			path: "spec.host.secretRef.name", says: "Required",
		},
		{
			name: "no known provider", do: func(c config) { c.Spec.Provider = "gitlab" },
			path: "spec.provider", says: `supported values: "generic", "github", "azure"`,
		},
		{name: "a GitHub App", do: func(c config) { c.Spec.Provider = configbutler.ProviderGitHub }},
		{
			name: "a GitHub App without a Secret", do: func(c config) { c.Spec.Provider, c.Spec.SecretRef = configbutler.ProviderGitHub, nil },
			path: "spec.secretRef", says: "githubAppID",
		},
		{
			name: "a GitHub App over ssh", do: func(c config) { c.Spec.Provider, c.Spec.RepoURL = configbutler.ProviderGitHub, "git@github.com:a/b" },
			path: "spec.repoUrl", says: "provider github needs an https URL",
		},
		{name: "the identity at Azure", do: func(c config) { c.Spec.Provider, c.Spec.SecretRef = configbutler.ProviderAzure, nil }},
		{
			name: "the identity at Azure and a Secret", do: func(c config) { c.Spec.Provider = configbutler.ProviderAzure },
			path: "spec.secretRef", says: "without a Secret",
		},
		{
			name: "the identity at Azure over ssh", do: func(c config) {
				c.Spec.Provider, c.Spec.SecretRef, c.Spec.RepoURL = configbutler.ProviderAzure, nil, "git@ssh.dev.azure.com:v3/a/b/c"
			},
			path: "spec.repoUrl", says: "provider azure needs an https URL",
		},
		{name: "a proxy", do: func(c config) { c.Spec.ProxySecretRef = &configbutler.SecretReference{Name: "proxy"} }},
		{
			name: "a proxy without a name", do: func(c config) { c.Spec.ProxySecretRef = &configbutler.SecretReference{} },
			path: "spec.proxySecretRef.name", says: "Required",
		},
		{
			name: "an interval too short", do: func(c config) { c.Spec.Push.Interval.Duration = 99 * time.Millisecond },
			path: "spec.push.interval", says: "at least 100ms",
		},
		{
			name: "an interval too long", do: func(c config) { c.Spec.Push.Interval.Duration = time.Hour + 1 },
			path: "spec.push.interval", says: "at most 1h",
		},
		{
			name: "no commits in a push", do: func(c config) { c.Spec.Push.MaxCommits = ptr.To[int32](0) },
			path: "spec.push.maxCommits", says: "at least 1",
		},
		{
			name: "too many commits in a push", do: func(c config) { c.Spec.Push.MaxCommits = ptr.To[int32](10001) },
			path: "spec.push.maxCommits", says: "at most 10000",
		},
		{name: "no bounds on pushes", do: func(c config) { c.Spec.Push = &configbutler.PushPolicy{} }},
		{
			name: "a committer without a name", do: func(c config) { c.Spec.Commit.Committer.Name = "" },
			path: "spec.commit.committer.name", says: "Required",
		},
		{
			name: "a committer with an angle bracket", do: func(c config) { c.Spec.Commit.Committer.Name = "a <b>" },
			path: "spec.commit.committer.name", says: "must not contain <",
		},
		{
			name: "a committer with a newline", do: func(c config) { c.Spec.Commit.Committer.Email = "a\nparent 0" },
			path: "spec.commit.committer.email", says: "control characters",
		},
		{
			name: "a signature of no known format", do: func(c config) { c.Spec.Commit.Signing.Format = "X509" },
			path: "spec.commit.signing.format", says: `supported values: "SSH", "OpenPGP"`,
		},
		{
			name: "a signature without a key", do: func(c config) { c.Spec.Commit.Signing.SecretRef.Name = "" },
			path: "spec.commit.signing.secretRef.name", says: "Required",
		},
		{
			name: "a branch that cannot be", do: func(c config) { c.Spec.AllowedBranches = []string{"main", "a..b"} },
			path: "spec.allowedBranches[1]", says: "..",
		},
		{
			name: "a glob that does not end", do: func(c config) { c.Spec.AllowedBranches = []string{"release/[a-"} },
			path: "spec.allowedBranches[0]", says: "[a-z] a range",
		},
		{
			name: "a glob with a space", do: func(c config) { c.Spec.AllowedBranches = []string{"release *"} },
			path: "spec.allowedBranches[0]", says: "without spaces",
		},
		{
			name: "an empty glob", do: func(c config) { c.Spec.AllowedBranches = []string{""} },
			path: "spec.allowedBranches[0]", says: "release/*",
		},
		{
			name: "a branch twice", do: func(c config) { c.Spec.AllowedBranches = []string{"main", "main"} },
			path: "spec.allowedBranches[1]", says: "Duplicate",
		},
		{
			name: "an access policy without a mode", do: func(c config) { c.Spec.AccessPolicy.NamespacedRules.Mode = "" },
			path: "spec.accessPolicy.namespacedRules.mode", says: `"SameNamespace", "AllNamespaces", "FromSelector"`,
		},
		{
			name: "a selector that is not asked for",
			do:   func(c config) { c.Spec.AccessPolicy.NamespacedRules.NamespaceSelector = selector("a", "b") },
			path: "spec.accessPolicy.namespacedRules.namespaceSelector", says: "absent unless mode is FromSelector",
		},
		{
			name: "a selector that is missing", do: func(c config) {
				c.Spec.AccessPolicy.NamespacedRules.Mode = configbutler.AccessModeFromSelector
			},
			path: "spec.accessPolicy.namespacedRules.namespaceSelector", says: "FromSelector needs it",
		},
		{name: "a selector", do: func(c config) {
			c.Spec.AccessPolicy.NamespacedRules = configbutler.NamespacedRules{
				Mode: configbutler.AccessModeFromSelector, NamespaceSelector: selector("team", "a"),
			}
		}},
		{
			name: "a selector that cannot be", do: func(c config) {
				c.Spec.AccessPolicy.NamespacedRules = configbutler.NamespacedRules{
					Mode: configbutler.AccessModeFromSelector, NamespaceSelector: selector("a b", "c"),
				}
			},
			path: "spec.accessPolicy.namespacedRules.namespaceSelector.matchLabels", says: "a b",
		},
	})
}

func TestWebURLTemplate(t *testing.T) {
	tests := []struct {
		template string
		refused  bool
	}{
		{template: ""},
		{template: "https://git.example.com/team/repo/commit/{sha}"},
		{template: "http://git.example.com:3000/commit?id={sha}"},
		{template: "https://git.example.com/team/repo/commit/", refused: true},
		{template: "git.example.com/{sha}", refused: true},
		{template: "ftp://git.example.com/{sha}", refused: true},
		{template: "javascript://git.example.com/{sha}", refused: true},
		{template: "https:///{sha}", refused: true},
		{template: "https://git.example.com/{sha}/{branch}", refused: true},
		{template: "https://bot:" + secret + "@git.example.com/{sha}", refused: true},
		{template: "https://git.example.com/a b/{sha}", refused: true},
		{template: "https://git.example.com/{sha}" + strings.Repeat("a", 2048), refused: true},
	}
	for _, test := range tests {
		t.Run(test.template, func(t *testing.T) {
			errs := validation.ValidateGitRepoConfig(with(repository(), func(c *configbutler.GitRepoConfig) {
				c.Spec.WebURLTemplate = test.template
			}), validation.Options{})
			if refused := len(errs) == 1 && errs[0].Field == "spec.webURLTemplate"; refused != test.refused || !refused && len(errs) > 0 {
				t.Errorf("want refused %v, got %v", test.refused, errs)
			}
			if len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), secret) {
				t.Errorf("the error shows a credential: %v", errs)
			}
		})
	}
}
