// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// keyToken is the key of the bearer token in a Secret.
	keyToken = "token"
	// maxShown bounds the bytes of a response that are shown.
	maxShown = 200
)

// credentials authenticate to a receiver. The zero value sends none. No formatting verb prints their values.
type credentials struct {
	token, username, password string
	redactor                  outbound.Redactor
}

var _ fmt.Formatter = credentials{}

// Format writes a placeholder for every verb.
func (credentials) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(outbound.Redacted)) }

// readCredentials reads the credentials from a Secret. Its errors are shown to users and quote nothing of the Secret.
func readCredentials(
	ctx context.Context, secrets corev1client.SecretsGetter, ref *v1alpha1.NamespacedObjectReference,
) (credentials, error) {
	if ref == nil {
		return credentials{}, nil
	}
	secret, err := outbound.ReadSecret(ctx, secrets.Secrets(ref.Namespace).Get, ref.Namespace, ref.Name)
	if err != nil {
		return credentials{}, err
	}
	return credentialsOf(secret)
}

func credentialsOf(secret outbound.Secret) (credentials, error) {
	token, err := secret.HeaderValue(keyToken)
	if err != nil {
		return credentials{}, err
	}
	c := credentials{token: token, username: secret.Value(corev1.BasicAuthUsernameKey), password: secret.Value(corev1.BasicAuthPasswordKey)}
	if err := secret.CheckLength(c.username, c.password); err != nil {
		return credentials{}, err
	}
	switch {
	case c.token != "":
		c.username, c.password = "", ""
	case c.username == "" || c.password == "":
		return credentials{}, outbound.InvalidSecret("the Secret %s has neither token nor username and password; add one of the two", secret.Name)
	}
	// Basic authentication encodes both. One of token and password is empty.
	c.redactor = outbound.NewRedactor([]string{c.token, c.password}, c.username+":"+c.token+c.password)
	return c, nil
}

// redact returns the printable line that is shown of a text from a receiver.
func (c credentials) redact(text string) string {
	return summary.Cut(summary.Line(c.redactor.Redact(text)), maxShown)
}

// authorize sets the Authorization header.
func (c credentials) authorize(request *http.Request) {
	switch {
	case c.token != "":
		request.Header.Set("Authorization", "Bearer "+c.token)
	case c.password != "":
		request.SetBasicAuth(c.username, c.password)
	}
}
