// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
)

// The keys of a Secret for a GitHub App, which are those of Flux.
const (
	keyAppID           = "githubAppID"
	keyAppInstallation = "githubAppInstallationID"
	keyAppOwner        = "githubAppInstallationOwner"
	keyAppPrivateKey   = "githubAppPrivateKey"
	keyAppBaseURL      = "githubAppBaseURL"
)

const (
	// gitHubUser is the name with which GitHub takes a token as the password.
	gitHubUser = "x-access-token"
	// gitHubAPIPath is the path of the API on GitHub Enterprise Server. Elsewhere the API has a host of its own.
	gitHubAPIPath   = "/api/v3"
	gitHubAPIPrefix = "api."
)

var (
	gitHubNumber     = regexp.MustCompile(`^[0-9]{1,19}$`)
	gitHubName       = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
	gitHubRepository = regexp.MustCompile(`^/([A-Za-z0-9_-]{1,100})/([A-Za-z0-9_.-]{1,100})/?$`)
)

// login returns the credentials for a repository, as its provider defines. through is its proxy; nil if it has none.
func (r *repositories) login(ctx context.Context, config *v1alpha1.GitRepoConfig, through *proxy.Proxy) (gitrepo.Credentials, error) {
	switch {
	case config.Spec.Provider == v1alpha1.ProviderAzure:
		return r.azure.credentials(r.tokens, config.Namespace, config.Spec.RepoURL)
	case config.Spec.Provider == v1alpha1.ProviderGitHub && config.Spec.SecretRef == nil:
		return gitrepo.Credentials{}, refused(v1alpha1.ReasonSecretNotFound, "spec.secretRef: provider github needs a Secret with %s", keyAppID)
	case config.Spec.SecretRef == nil:
		return gitrepo.Credentials{}, nil
	}
	secret, err := r.secret(ctx, config, config.Spec.SecretRef.Name, "spec.secretRef")
	if err != nil {
		return gitrepo.Credentials{}, err
	}
	if config.Spec.Provider == v1alpha1.ProviderGitHub {
		return r.gitHubCredentials(config, secret, through)
	}
	return credentials(secret, strings.HasPrefix(config.Spec.RepoURL, "http"))
}

// gitHubCredentials returns the credentials of a GitHub App.
func (r *repositories) gitHubCredentials(
	config *v1alpha1.GitRepoConfig, secret *corev1.Secret, through *proxy.Proxy,
) (gitrepo.Credentials, error) {
	app, err := r.gitHubApp(config, secret)
	if err != nil {
		return gitrepo.Credentials{}, err
	}
	return gitrepo.Credentials{Username: gitHubUser, Tokens: tokenSource{r.tokens.Source(app, through)}, CABundle: app.CABundle}, nil
}

// gitHubApp reads the app of a Secret, limited to the repository.
func (r *repositories) gitHubApp(config *v1alpha1.GitRepoConfig, secret *corev1.Secret) (*gittoken.GitHubApp, error) {
	repository, err := url.Parse(config.Spec.RepoURL)
	if err != nil || !isSecure(repository, r.allowInsecure) {
		return nil, refused(v1alpha1.ReasonURLRefused, "spec.repoUrl: provider github needs an https URL")
	}
	path := gitHubRepository.FindStringSubmatch(strings.TrimSuffix(strings.TrimSuffix(repository.Path, "/"), ".git"))
	if path == nil {
		return nil, refused(v1alpha1.ReasonURLRefused, "spec.repoUrl: provider github needs https://HOST/OWNER/REPOSITORY")
	}
	text := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	app := &gittoken.GitHubApp{
		AppID: text(keyAppID), InstallationID: text(keyAppInstallation), Owner: text(keyAppOwner), PrivateKey: secret.Data[keyAppPrivateKey],
		CABundle: valueOf(secret, keysAuthority), Repository: path[1] + "/" + path[2],
	}
	if err := checkGitHubApp(app, secret); err != nil {
		return nil, err
	}
	if app.API, err = r.gitHubAPI(repository, text(keyAppBaseURL), secret); err != nil {
		return nil, err
	}
	return app, nil
}

// checkGitHubApp returns an error unless the values of a Secret can be those of an app.
func checkGitHubApp(app *gittoken.GitHubApp, secret *corev1.Secret) error {
	invalid := func(key, detail string) error {
		return refused(v1alpha1.ReasonSecretInvalid, "key %s of Secret %s/%s cannot be used: %s", key, secret.Namespace, secret.Name, detail)
	}
	switch {
	case app.AppID == "":
		return lacksKey(secret, []string{keyAppID}, "the key "+keyAppID+" for provider github")
	case app.InstallationID == "" && app.Owner == "":
		return lacksKey(secret, []string{keyAppInstallation, keyAppOwner},
			"the key "+keyAppInstallation+" or "+keyAppOwner+" for provider github")
	case len(app.PrivateKey) == 0:
		return lacksKey(secret, []string{keyAppPrivateKey}, "the key "+keyAppPrivateKey+" for provider github")
	case !gitHubName.MatchString(app.AppID):
		return invalid(keyAppID, "it is not the ID of an app")
	case app.InstallationID != "" && !gitHubNumber.MatchString(app.InstallationID):
		return invalid(keyAppInstallation, "it is not a number")
	case app.InstallationID == "" && !gitHubName.MatchString(app.Owner):
		return invalid(keyAppOwner, "it is not the name of an organization or a user")
	}
	if err := app.Check(); err != nil {
		return invalid(keyAppPrivateKey, err.Error())
	}
	return nil
}

// gitHubAPI returns the URL of the API of the host of a repository. base is the one in the Secret, which may be empty. It must be of that
// host, because tokens of the API are sent there.
func (r *repositories) gitHubAPI(repository *url.URL, base string, secret *corev1.Secret) (*url.URL, error) {
	host := strings.ToLower(repository.Host)
	if base == "" {
		if host == "github.com" || strings.HasSuffix(host, ".ghe.com") {
			return &url.URL{Scheme: "https", Host: gitHubAPIPrefix + host}, nil
		}
		return &url.URL{Scheme: repository.Scheme, Host: repository.Host, Path: gitHubAPIPath}, nil
	}
	api, err := url.Parse(base)
	if err != nil || !isSecure(api, r.allowInsecure) {
		return nil, refused(v1alpha1.ReasonSecretInvalid, "key %s of Secret %s/%s must be an https URL, such as https://HOST%s",
			keyAppBaseURL, secret.Namespace, secret.Name, gitHubAPIPath)
	}
	switch strings.ToLower(api.Host) {
	case gitHubAPIPrefix + host:
		return api, nil
	case host:
		if strings.Trim(api.Path, "/") == "" {
			return api.JoinPath(gitHubAPIPath), nil
		}
		return api, nil
	}
	return nil, refused(v1alpha1.ReasonSecretInvalid, "key %s of Secret %s/%s is of %s, but spec.repoUrl is of %s: its API is at %s%s or %s%s",
		keyAppBaseURL, secret.Namespace, secret.Name, api.Host, host, host, gitHubAPIPath, gitHubAPIPrefix, host)
}

// tokenSource returns tokens with errors of a kind that gitrepo keeps.
type tokenSource struct{ *gittoken.Source }

var _ gitrepo.TokenSource = tokenSource{}

// Token implements gitrepo.TokenSource.
func (s tokenSource) Token(ctx context.Context, refused string) (string, error) {
	token, err := s.Source.Token(ctx, refused)
	var failed *gittoken.Error
	if errors.As(err, &failed) {
		kinds := map[gittoken.Kind]gitrepo.Kind{
			gittoken.Unreachable: gitrepo.Unreachable, gittoken.Refused: gitrepo.Unauthorized, gittoken.Invalid: gitrepo.Invalid,
		}
		return "", &gitrepo.Error{Kind: kinds[failed.Kind], Op: "get a token", Message: failed.Message}
	}
	return token, err //nolint:wrapcheck // It is the error of the context.
}
