// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// The keys of Secrets.
const (
	keyURL      = "url"
	keyToken    = "token"
	keySecret   = "secret"
	keyUsername = "username"
	keyPassword = "password"
)

const (
	// maxURL bounds a URL, in bytes.
	maxURL = 2048
	// maxShown bounds the bytes of a result's message.
	maxShown = 300
)

// secretReader reads the Secrets of one namespace.
type secretReader struct {
	client    corev1client.SecretsGetter
	namespace string
}

func (r secretReader) read(ctx context.Context, name string) (outbound.Secret, error) {
	return outbound.ReadSecret(ctx, r.client.Secrets(r.namespace).Get, r.namespace, name)
}

// proxy returns the proxy in a Secret.
func (r secretReader) proxy(ctx context.Context, name string) (*proxy.Proxy, error) {
	return outbound.ReadProxy(ctx, r.client.Secrets(r.namespace).Get, r.namespace, name)
}

// readURL returns the URL in a Secret. No error quotes it.
func readURL(secret outbound.Secret) (*url.URL, error) {
	raw := strings.TrimSpace(secret.Value(keyURL))
	if raw == "" {
		return nil, missing(secret, keyURL)
	}
	if len(raw) > maxURL {
		return nil, outbound.InvalidSecret("the url in the Secret %s is longer than %d bytes; write it again", secret.Name, maxURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, outbound.InvalidSecret("the url in the Secret %s is not a URL with http:// or https:// and a host; write it again",
			secret.Name)
	case u.User != nil:
		return nil, outbound.InvalidSecret("the url in the Secret %s has a user; put credentials into other keys", secret.Name)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// readToken returns the bearer token in a Secret.
func readToken(secret outbound.Secret) (string, error) {
	token, err := secret.HeaderValue(keyToken)
	return strings.TrimSpace(token), err
}

func missing(secret outbound.Secret, keys string) error {
	return outbound.InvalidSecret("the Secret %s has no key %s; add it", secret.Name, keys)
}

// urlSecrets are the parts of a URL by which it could be guessed.
func urlSecrets(u *url.URL) []string {
	const shortest = 9 // What is shorter is a word, such as services.
	secrets := []string{u.String(), u.RequestURI(), u.EscapedPath(), u.Path}
	for part := range strings.SplitSeq(u.Path, "/") {
		secrets = append(secrets, part)
	}
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	long := secrets[:0]
	for _, secret := range secrets {
		if len(secret) >= shortest {
			long = append(long, secret)
		}
	}
	return long
}

// failed returns the result of a delivery that failed before the receiver has responded.
func failed(err error) Result {
	var (
		notFound *outbound.SecretNotFoundError
		invalid  *outbound.InvalidSecretError
		result   = Result{Outcome: Retry, Message: summary.Cut(summary.Line(err.Error()), maxShown)}
	)
	switch {
	case errors.As(err, &notFound):
		result.Reason = v1alpha1.ReasonSecretNotFound
	case errors.As(err, &invalid):
		result.Reason = v1alpha1.ReasonSecretInvalid
	}
	return result
}

// unencodable returns the result for a message that no format can write.
func unencodable(err error) Result {
	return Result{Outcome: Rejected, Message: summary.Cut(summary.Line(fmt.Sprintf("cannot write the message: %s", err)), maxShown)}
}
