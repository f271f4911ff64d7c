// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// maxValue is larger than the headers that servers accept.
const maxValue = 16 << 10

// Secret holds the values of a Secret. No formatting verb prints them.
type Secret struct {
	// Name is the namespace and the name.
	Name string
	data map[string][]byte
}

var _ fmt.Formatter = Secret{}

// Format writes a placeholder for every verb.
func (Secret) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(Redacted)) }

// SecretNotFoundError is returned for a Secret that does not exist.
type SecretNotFoundError struct {
	// Name is the namespace and the name.
	Name string
	// Field is the field that names it.
	Field string
}

func (e *SecretNotFoundError) Error() string {
	return fmt.Sprintf("there is no Secret %s, which %s names; create it", e.Name, e.Field)
}

// InvalidSecretError is returned for a Secret that has no usable value.
type InvalidSecretError struct{ message string }

func (e *InvalidSecretError) Error() string { return e.message }

// InvalidSecret returns an InvalidSecretError. Its text is shown to users and must not quote a value.
func InvalidSecret(format string, arguments ...any) error {
	return &InvalidSecretError{fmt.Sprintf(format, arguments...)}
}

// GetSecret is the method of a client that reads a Secret of its namespace.
type GetSecret func(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)

// ReadSecret reads a Secret. get is the method of a client for the namespace. The errors are shown to users and quote nothing of the
// Secret.
func ReadSecret(ctx context.Context, get GetSecret, namespace, name string) (Secret, error) {
	return readSecret(ctx, get, namespace, name, "secretRef")
}

// ReadProxy reads the Secret with a proxy, like ReadSecret.
func ReadProxy(ctx context.Context, get GetSecret, namespace, name string) (*proxy.Proxy, error) {
	secret, err := readSecret(ctx, get, namespace, name, "proxySecretRef")
	if err != nil {
		return nil, err
	}
	p, err := proxy.FromSecret(secret.Name, secret.data)
	if err != nil {
		return nil, InvalidSecret("the Secret %s has no usable proxy: %s", secret.Name, err)
	}
	return p, nil
}

func readSecret(ctx context.Context, get GetSecret, namespace, name, field string) (Secret, error) {
	secret, err := get(ctx, name, metav1.GetOptions{})
	full := namespace + "/" + name
	switch {
	case apierrors.IsNotFound(err):
		return Secret{}, &SecretNotFoundError{full, field}
	case err != nil:
		return Secret{}, fmt.Errorf("read the Secret %s: %w", full, err)
	}
	return Secret{full, secret.Data}, nil
}

// Value returns the value of a key, empty if there is none. Files and shells add a newline to the end of a value, which is removed.
func (s Secret) Value(key string) string { return strings.TrimRight(string(s.data[key]), "\r\n") }

// HeaderValue returns the value of a key, which must fit into a header.
func (s Secret) HeaderValue(key string) (string, error) {
	value := s.Value(key)
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", InvalidSecret("the %s in the Secret %s has characters that no header can have, such as a line break; write it again",
			key, s.Name)
	}
	return value, s.CheckLength(value)
}

// CheckLength checks that values fit into one header together.
func (s Secret) CheckLength(values ...string) error {
	length := 0
	for _, value := range values {
		length += len(value)
	}
	if length > maxValue {
		return InvalidSecret("what the Secret %s holds is longer than %d characters, which no header can be", s.Name, maxValue)
	}
	return nil
}
