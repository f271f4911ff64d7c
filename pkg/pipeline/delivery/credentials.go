// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// keyToken is the key of the bearer token in a Secret.
	keyToken = "token"
	// maxSecret is larger than the headers that servers accept.
	maxSecret = 16 << 10
)

// credentials authenticate to a receiver. The zero value sends none. No formatting verb prints their values.
type credentials struct {
	token, username, password string
	// encodings are the forms in which a response may quote them.
	encodings []encodedSecret
}

var _ fmt.Formatter = credentials{}

// Format writes a placeholder for every verb.
func (credentials) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(redacted)) }

// readCredentials reads the credentials from a Secret. Its errors are shown to users and quote nothing of the Secret.
func readCredentials(
	ctx context.Context, secrets corev1client.SecretsGetter, ref *v1alpha1.NamespacedObjectReference,
) (credentials, error) {
	if ref == nil {
		return credentials{}, nil
	}
	secret, err := secrets.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return credentials{}, fmt.Errorf("there is no Secret %s/%s, which secretRef names; create it", ref.Namespace, ref.Name)
	case err != nil:
		return credentials{}, fmt.Errorf("read the Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return credentialsOf(secret)
}

func credentialsOf(secret *corev1.Secret) (credentials, error) {
	// Files and shells add a newline to the end of a value.
	value := func(key string) string { return strings.TrimRight(string(secret.Data[key]), "\r\n") }
	c := credentials{
		token: value(keyToken), username: value(corev1.BasicAuthUsernameKey), password: value(corev1.BasicAuthPasswordKey),
	}
	named := secret.Namespace + "/" + secret.Name
	switch {
	case strings.ContainsFunc(c.token, unicode.IsControl):
		return credentials{}, fmt.Errorf("the token in the Secret %s has characters that no header can have, such as a line break; "+
			"write it again",
			named)
	case len(c.token) > maxSecret || len(c.username)+len(c.password) > maxSecret:
		return credentials{}, fmt.Errorf("what the Secret %s holds is longer than %d characters, which no header can be", named, maxSecret)
	case c.token != "":
		c.username, c.password = "", ""
	case c.username == "" || c.password == "":
		return credentials{}, fmt.Errorf("the Secret %s has neither token nor username and password; add one of the two", named)
	}
	c.encodings = encodingsOf(c)
	return c, nil
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
