// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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
	if strings.HasPrefix(settings.APIURL, "http://") && !r.allowInsecure {
		return nil, refused(v1alpha1.ReasonURLRefused, "spec.host.apiURL: http URLs need the server to run with --git-allow-insecure")
	}
	token, authorities, err := r.hostToken(ctx, config, settings, kind)
	if err != nil {
		return nil, err
	}
	client, err := r.hostClient(authorities)
	if err != nil {
		return nil, err
	}
	host, err := githost.New(githost.Options{
		Kind: kind, RepoURL: config.Spec.RepoURL, APIURL: settings.APIURL, Client: client,
		Token: func(context.Context) (githost.Token, error) { return token, nil },
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

// hostToken returns the token for the API, and the authorities that the Secret has.
func (r *repositories) hostToken(
	ctx context.Context, config *v1alpha1.GitRepoConfig, settings v1alpha1.GitHost, kind githost.Kind,
) (githost.Token, []byte, error) {
	ref, field := settings.SecretRef, "spec.host.secretRef"
	if ref == nil && strings.HasPrefix(config.Spec.RepoURL, "http") {
		ref, field = config.Spec.SecretRef, "spec.secretRef"
	}
	if ref == nil {
		return githost.Token{}, nil, refused(v1alpha1.ReasonHostInvalid,
			"GitRepoConfig %s/%s: spec.host.secretRef is required for deliveries by pull request, for the token with which they are opened",
			config.Namespace, config.Name)
	}
	secret, err := r.secret(ctx, config, ref.Name, field)
	if err != nil {
		return githost.Token{}, nil, err
	}
	authorities := valueOf(secret, keysAuthority)
	if token := valueOf(secret, keysToken); token != nil {
		return githost.Token{Value: string(token)}, authorities, nil
	}
	password := string(secret.Data[corev1.BasicAuthPasswordKey])
	if password == "" {
		return githost.Token{}, nil, lacksKey(secret, append([]string{corev1.BasicAuthPasswordKey}, keysToken...),
			"the key bearerToken (or password), for the API of the Git host")
	}
	token := githost.Token{Value: password}
	switch kind {
	case githost.AzureDevOps:
		token.Basic = true
	case githost.Gitea:
		// A password of a user needs the user's name. A token is accepted in its place.
		token.Username = string(secret.Data[corev1.BasicAuthUsernameKey])
		token.Basic = token.Username != ""
	case githost.GitHub, githost.GitLab:
	}
	return token, authorities, nil
}

// hostClient returns an HTTP client that dials as Git does and trusts the authorities.
func (r *repositories) hostClient(authorities []byte) (*http.Client, error) {
	configuration := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authorities) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, refused(v1alpha1.ReasonSecretInvalid, "%s of the Secret for the API of the Git host holds no certificate in PEM form",
				cmp.Or(keysAuthority...))
		}
		configuration.RootCAs = pool
	}
	return &http.Client{Transport: &http.Transport{DialContext: r.dial, TLSClientConfig: configuration, DisableKeepAlives: true}}, nil
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
