// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"bytes"
	"context"
	"fmt"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Identities returns the private keys of the server in a namespace, those of earlier key pairs included that are in the same Secret. It
// returns none if there is no Secret, or no key in it.
func Identities(ctx context.Context, client corev1client.SecretsGetter, namespace string) ([]age.Identity, error) {
	secret, err := client.Secrets(namespace).Get(ctx, PairName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the Secret %s/%s cannot be had: %w", namespace, PairName, err)
	}
	identities, err := age.ParseIdentities(bytes.NewReader(secret.Data[PairKey]))
	if err != nil {
		return nil, nil //nolint:nilerr // The error may quote the private key. The condition of destinations says what is wrong.
	}
	return identities, nil
}

// Seed returns the seed of the server in a namespace; nil if there is none. It creates none.
func Seed(ctx context.Context, client corev1client.SecretsGetter, namespace string) ([]byte, error) {
	secret, err := client.Secrets(namespace).Get(ctx, SeedName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the Secret %s/%s cannot be had: %w", namespace, SeedName, err)
	}
	return secret.Data[keySeed], nil
}
