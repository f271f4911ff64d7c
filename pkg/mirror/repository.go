// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
)

// repositories builds remotes and signers from GitRepoConfigs and their Secrets.
type repositories struct {
	cluster kubernetes.Interface
	network *proxy.Network
	// limits are those of every remote; all share the slots of large operations.
	limits gitrepo.Limits
	// allowInsecure lets http and file URLs in (--git-allow-insecure).
	allowInsecure bool
	// now returns the time at which the expiry of keys is checked.
	now func() time.Time
	// tokens are those of providers other than generic; all branches share them.
	tokens *gittoken.Tokens
	// azure is the server's identity for the provider azure; nil if it has none.
	azure *AzureIdentity
}

// reasonError is an error with the reason of a condition.
type reasonError struct{ reason conditions.Reason }

func (e *reasonError) Error() string { return e.reason.Message }

// refused returns a reasonError with a formatted message.
func refused(code, format string, arguments ...any) error {
	return &reasonError{conditions.Reason{Code: code, Message: fmt.Sprintf(format, arguments...)}}
}

// remote returns the remote of a repository with the current credentials of its Secret.
func (r *repositories) remote(ctx context.Context, config *v1alpha1.GitRepoConfig) (*gitrepo.Remote, error) {
	address := config.Spec.RepoURL
	if insecure := strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "file://"); insecure && !r.allowInsecure {
		return nil, refused(v1alpha1.ReasonURLRefused, "spec.repoUrl: http and file URLs need the server to run with --git-allow-insecure")
	}
	through, err := r.proxy(ctx, config)
	if err != nil {
		return nil, err
	}
	credentials, err := r.login(ctx, config, through)
	if err != nil {
		return nil, err
	}
	remote := &gitrepo.Remote{
		URL: address, Credentials: credentials, Network: r.network, Proxy: through, Limits: r.limits, Now: r.now,
	}
	remote.Limits.Owner = config.Namespace
	return remote, nil
}

// secret reads the Secret that a field of the configuration names.
func (r *repositories) secret(ctx context.Context, config *v1alpha1.GitRepoConfig, name, field string) (*corev1.Secret, error) {
	secret, err := r.cluster.CoreV1().Secrets(config.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, refused(v1alpha1.ReasonSecretNotFound, "there is no Secret %s/%s (%s)", config.Namespace, name, field)
	case err != nil:
		return nil, fmt.Errorf("read the Secret of %s: %w", field, err)
	}
	return secret, nil
}

// The keys that Secrets for Git use: this project's first, then those of Flux and Argo CD.
var (
	keysPrivateKey = []string{corev1.SSHAuthPrivateKey, "identity", "sshPrivateKey"}
	keysPassphrase = []string{"passphrase", "password"}
	keysKnownHosts = []string{"known_hosts", "knownHosts"}
	keysToken      = []string{"bearerToken", "token"}
	keysAuthority  = []string{"caBundle", "ca.crt", "caFile"}
	keysCert       = []string{corev1.TLSCertKey, "certFile", "tlsClientCertData"}
	keysKey        = []string{corev1.TLSPrivateKeyKey, "keyFile", "tlsClientCertKey"}
	keysGitHubApp  = []string{keyAppID, keyAppPrivateKey}
	// Certificates have the names that ssh looks for beside each key.
	keysCertificate = []string{corev1.SSHAuthPrivateKey + "-cert.pub", "identity-cert.pub", "sshPrivateKey-cert.pub"}
)

// credentials reads a Secret for a URL that is http(s) or SSH.
func credentials(secret *corev1.Secret, http bool) (gitrepo.Credentials, error) {
	if http {
		return httpCredentials(secret)
	}
	c := gitrepo.Credentials{
		SSHPrivateKey: valueOf(secret, keysPrivateKey), SSHPassphrase: valueOf(secret, keysPassphrase),
		SSHCertificate: valueOf(secret, keysCertificate), KnownHosts: valueOf(secret, keysKnownHosts),
	}
	switch {
	case c.SSHPrivateKey == nil:
		return c, lacksKey(secret, keysPrivateKey, "the key ssh-privatekey (or identity) for an SSH URL")
	case c.KnownHosts == nil:
		return c, lacksKey(secret, keysKnownHosts, "the key known_hosts for an SSH URL, so that the server can be told from an impostor")
	}
	return c, nil
}

// httpCredentials reads a Secret for an http(s) URL. A password needs no username: with an access token as the password, the common Git
// servers accept any username, and gitrepo sends one.
func httpCredentials(secret *corev1.Secret) (gitrepo.Credentials, error) {
	c := gitrepo.Credentials{
		Username: string(secret.Data[corev1.BasicAuthUsernameKey]), Password: string(secret.Data[corev1.BasicAuthPasswordKey]),
		BearerToken: string(valueOf(secret, keysToken)), CABundle: valueOf(secret, keysAuthority),
		ClientCert: valueOf(secret, keysCert), ClientKey: valueOf(secret, keysKey),
	}
	if (c.ClientCert == nil) != (c.ClientKey == nil) {
		return c, lacksKey(secret, slices.Concat(keysCert, keysKey), "both tls.crt and tls.key, or neither")
	}
	if c.Password != "" || c.BearerToken != "" || c.ClientCert != nil {
		return c, nil
	}
	secrets := slices.Concat([]string{corev1.BasicAuthPasswordKey}, keysToken)
	if key, _ := firstOf(secret, keysGitHubApp); key != "" {
		return c, refused(v1alpha1.ReasonSecretInvalid, "Secret %s/%s has %s: to log in as a GitHub App, set spec.provider to github",
			secret.Namespace, secret.Name, key)
	}
	if c.CABundle == nil || emptyOf(secret, secrets) != "" {
		return c, lacksKey(secret, secrets,
			"the key password, and username unless the server accepts any, or the key bearerToken, for an HTTP URL")
	}
	return c, nil
}

// lacksKey returns the error of a Secret without a value that is needed. If one of the keys exists and is empty, the error names it.
func lacksKey(secret *corev1.Secret, keys []string, needs string) error {
	empty := ""
	if key := emptyOf(secret, keys); key != "" {
		empty = fmt.Sprintf("; its key %s is empty", key)
	}
	return refused(v1alpha1.ReasonSecretInvalid, "Secret %s/%s needs %s%s", secret.Namespace, secret.Name, needs, empty)
}

// emptyOf returns the first of the keys that a Secret has without a value, empty if there is none.
func emptyOf(secret *corev1.Secret, keys []string) string {
	for _, key := range keys {
		if value, exists := secret.Data[key]; exists && len(value) == 0 {
			return key
		}
	}
	return ""
}

// valueOf returns the value of the first of the keys that a Secret has, nil if it has none of them.
func valueOf(secret *corev1.Secret, keys []string) []byte {
	_, value := firstOf(secret, keys)
	return value
}

// firstOf returns the first of the keys that a Secret has with a value, and that value.
func firstOf(secret *corev1.Secret, keys []string) (string, []byte) {
	for _, key := range keys {
		if value := secret.Data[key]; len(value) > 0 {
			return key, value
		}
	}
	return "", nil
}

// reasonOf returns the reason of an error, zero without one. otherwise is the code for an error that has none.
func reasonOf(err error, otherwise string) conditions.Reason {
	var refusal *reasonError
	var git *gitrepo.Error
	switch {
	case err == nil:
		return conditions.Reason{}
	case errors.As(err, &refusal):
		return refusal.reason
	case errors.As(err, &git):
		return conditions.Reason{Code: codeOfKind(git.Kind), Message: git.Error()}
	default:
		return conditions.Reason{Code: otherwise, Message: err.Error()}
	}
}

// codeOfKind returns the reason code of a Git error.
func codeOfKind(kind gitrepo.Kind) string {
	switch kind {
	case gitrepo.Unauthorized:
		return v1alpha1.ReasonAuthenticationFailed
	case gitrepo.NotFound:
		return v1alpha1.ReasonRepositoryNotFound
	case gitrepo.Rejected:
		return v1alpha1.ReasonPushRejected
	case gitrepo.Invalid:
		return v1alpha1.ReasonSecretInvalid
	case gitrepo.TooLarge:
		return v1alpha1.ReasonRepositoryTooLarge
	default:
		return v1alpha1.ReasonRepositoryUnreachable
	}
}
