// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
)

// host returns the client of the API of a repository's Git host with its current credentials.
func (r *repositories) host(ctx context.Context, config *v1alpha1.GitRepoConfig) (githost.Host, error) {
	settings := v1alpha1.GitHost{}
	if config.Spec.Host != nil {
		settings = *config.Spec.Host
	}
	kind, err := hostKind(config, settings)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.ToLower(settings.APIURL), "http://") && !r.allowInsecure {
		return nil, refused(v1alpha1.ReasonURLRefused, "spec.host.apiURL: http URLs need the server to run with --git-allow-insecure")
	}
	login, err := r.hostLogin(ctx, config, settings, kind)
	if err != nil {
		return nil, err
	}
	client, err := r.hostClient(ctx, config, login.authorities)
	if err != nil {
		return nil, err
	}
	host, err := githost.New(githost.Options{
		Kind: kind, RepoURL: config.Spec.RepoURL, APIURL: login.apiURL, Client: client, Token: login.token,
	})
	if err != nil {
		return nil, refused(v1alpha1.ReasonHostInvalid, "spec.host: %v", err)
	}
	return host, nil
}

// hostKind returns the kind of a repository's Git host.
func hostKind(config *v1alpha1.GitRepoConfig, settings v1alpha1.GitHost) (githost.Kind, error) {
	if settings.Type != "" {
		return githost.Kind(settings.Type), nil
	}
	if kind, known := githost.KindOf(config.Spec.RepoURL); known {
		return kind, nil
	}
	switch config.Spec.Provider {
	case v1alpha1.ProviderGitHub:
		return githost.GitHub, nil
	case v1alpha1.ProviderAzure:
		return githost.AzureDevOps, nil
	case v1alpha1.ProviderGeneric:
	}
	return "", refused(v1alpha1.ReasonHostInvalid,
		"GitRepoConfig %s/%s: spec.host.type is required for deliveries by pull request, because the host of spec.repoUrl is not a well-known "+
			"one: GitHub, GitLab, Gitea or AzureDevOps", config.Namespace, config.Name)
}

// hostLogin is how the server logs in at the API of a Git host.
type hostLogin struct {
	// apiURL is where the API begins; empty if it is derived from the URL of the repository.
	apiURL string
	// authorities are certificates in PEM form that are trusted beside those of the system.
	authorities []byte
	token       func(ctx context.Context, refused string) (githost.Token, error)
}

// hostLogin returns how to log in at the API. Without a Secret for the API it is as the provider defines.
func (r *repositories) hostLogin(
	ctx context.Context, config *v1alpha1.GitRepoConfig, settings v1alpha1.GitHost, kind githost.Kind,
) (hostLogin, error) {
	if settings.SecretRef != nil || config.Spec.Provider == v1alpha1.ProviderGeneric || config.Spec.Provider == "" {
		return r.secretLogin(ctx, config, settings, kind)
	}
	if settings.APIURL != "" {
		return hostLogin{}, refused(v1alpha1.ReasonHostInvalid,
			"spec.host.apiURL needs spec.host.secretRef: tokens of provider %s are sent only to the API that belongs to spec.repoUrl", config.Spec.Provider)
	}
	if config.Spec.Provider == v1alpha1.ProviderGitHub {
		return r.gitHubLogin(ctx, config)
	}
	credentials, err := r.azure.credentials(r.tokens, config.Namespace, config.Spec.RepoURL)
	return hostLogin{token: tokenOf(credentials.Tokens)}, err
}

// gitHubLogin returns the login of a GitHub App that may write pull requests.
func (r *repositories) gitHubLogin(ctx context.Context, config *v1alpha1.GitRepoConfig) (hostLogin, error) {
	through, err := r.proxy(ctx, config)
	if err != nil {
		return hostLogin{}, err
	}
	secret, err := r.secret(ctx, config, config.Spec.SecretRef.Name, "spec.secretRef")
	if err != nil {
		return hostLogin{}, err
	}
	app, err := r.gitHubApp(config, secret)
	if err != nil {
		return hostLogin{}, err
	}
	app.PullRequests = true
	return hostLogin{
		apiURL: app.API.String(), authorities: app.CABundle, token: tokenOf(tokenSource{r.tokens.Source(app, through)}),
	}, nil
}

// tokenOf returns the tokens of a source.
func tokenOf(tokens gitrepo.TokenSource) func(context.Context, string) (githost.Token, error) {
	return func(ctx context.Context, refused string) (githost.Token, error) {
		value, err := tokens.Token(ctx, refused)
		return githost.Token{Value: value}, err
	}
}

// secretLogin returns the login with the token of a Secret: that for the API, or that for the repository.
func (r *repositories) secretLogin(
	ctx context.Context, config *v1alpha1.GitRepoConfig, settings v1alpha1.GitHost, kind githost.Kind,
) (hostLogin, error) {
	ref, field := settings.SecretRef, "spec.host.secretRef"
	if ref == nil && strings.HasPrefix(config.Spec.RepoURL, "http") {
		ref, field = config.Spec.SecretRef, "spec.secretRef"
	}
	if ref == nil {
		return hostLogin{}, refused(v1alpha1.ReasonHostInvalid,
			"GitRepoConfig %s/%s: spec.host.secretRef is required for deliveries by pull request, for the token with which they are opened",
			config.Namespace, config.Name)
	}
	secret, err := r.secret(ctx, config, ref.Name, field)
	if err != nil {
		return hostLogin{}, err
	}
	token, err := hostToken(secret, kind)
	return hostLogin{
		apiURL: settings.APIURL, authorities: valueOf(secret, keysAuthority),
		token: func(context.Context, string) (githost.Token, error) { return token, nil },
	}, err
}

// hostToken returns the token for the API from a Secret.
func hostToken(secret *corev1.Secret, kind githost.Kind) (githost.Token, error) {
	if token := valueOf(secret, keysToken); token != nil {
		return githost.Token{Value: string(token)}, nil
	}
	password := string(secret.Data[corev1.BasicAuthPasswordKey])
	if password == "" {
		return githost.Token{}, lacksKey(secret, append([]string{corev1.BasicAuthPasswordKey}, keysToken...),
			"the key bearerToken (or password), for the API of the Git host")
	}
	token := githost.Token{Value: password}
	switch kind {
	case githost.AzureDevOps:
		token.Basic = true
	case githost.Gitea:
		// The password of a user needs the user's name. A token is accepted in its place.
		token.Username = string(secret.Data[corev1.BasicAuthUsernameKey])
		token.Basic = token.Username != ""
	case githost.GitHub, githost.GitLab:
	}
	return token, nil
}

// host returns the client of the API of a branch's Git host.
func (m *mirror) host(ctx context.Context, key branchKey) (githost.Host, error) {
	config, err := m.informers.Configbutler().V1alpha1().GitRepoConfigs().Lister().GitRepoConfigs(key.repository.Namespace).
		Get(key.repository.Name)
	if err != nil {
		return nil, fmt.Errorf("read GitRepoConfig %s: %w", key.repository, err)
	}
	return m.repositories.host(ctx, config)
}
