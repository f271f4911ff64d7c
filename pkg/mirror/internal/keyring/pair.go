// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readPair sets recipient to the public key of the key pair, which it creates if there has never been one. The key is
// recorded before it is used. After an error the recorded recipient stays.
func (r *Ring) readPair(ctx context.Context, state *corev1.Secret, recipient *string) error {
	name := r.namespace + "/" + PairName
	secret, err := r.secrets.Get(ctx, PairName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && *recipient != "":
		return fmt.Errorf("the Secret %s, with the private key for %s, is gone: put it back from a copy, or put another private key there",
			name, *recipient)
	case apierrors.IsNotFound(err):
		secret, err = r.createPair(ctx)
	}
	if err != nil {
		return fmt.Errorf("the Secret %s cannot be had: %w", name, err)
	}
	public := publicKey(secret.Data[PairKey])
	if public == "" {
		return fmt.Errorf("the Secret %s holds no private key of age under %s (AGE-SECRET-KEY-1...)", name, PairKey)
	}
	if public == *recipient {
		return nil
	}
	if err := r.record(ctx, state, public); err != nil {
		return fmt.Errorf("the public key %s of the Secret %s cannot be recorded in the Secret %s: %w", public, name, SeedName, err)
	}
	*recipient = public
	return nil
}

// publicKey returns the public key of the first private key in an age identity file; empty if there is none.
func publicKey(file []byte) string {
	// The error is dropped because it may quote the private key.
	identities, err := age.ParseIdentities(bytes.NewReader(file))
	if err != nil {
		return ""
	}
	for _, identity := range identities {
		if pair, ok := identity.(*age.X25519Identity); ok {
			return pair.Recipient().String()
		}
	}
	return ""
}

// createPair generates a key pair and creates its Secret in the format of age-keygen.
func (r *Ring) createPair(ctx context.Context) (*corev1.Secret, error) {
	pair, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generate a key pair: %w", err)
	}
	file := fmt.Sprintf("# created: %s\n# public key: %s\n%s\n", time.Now().UTC().Format(time.RFC3339), pair.Recipient(), pair)
	return r.create(ctx, PairName, map[string][]byte{PairKey: []byte(file)})
}
