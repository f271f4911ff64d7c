// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
)

// The keys of a Secret that signs, by format.
var (
	keysSigningSSH     = []string{corev1.SSHAuthPrivateKey, "identity"}
	keysSigningOpenPGP = []string{"git.asc"}
)

// keySigningPassphrase opens either.
const keySigningPassphrase = "passphrase"

// signer returns the signer of a repository's commits with the current key of its Secret; nil if they are not signed.
func (r *repositories) signer(ctx context.Context, config *v1alpha1.GitRepoConfig) (signature.Signer, error) {
	if config.Spec.Commit == nil || config.Spec.Commit.Signing == nil {
		return nil, nil
	}
	signing := config.Spec.Commit.Signing
	secret, err := r.secret(ctx, config, signing.SecretRef.Name, "spec.commit.signing.secretRef")
	if err != nil {
		return nil, err
	}
	keys, other := keysSigningSSH, keysSigningOpenPGP
	if signing.Format == v1alpha1.SigningFormatOpenPGP {
		keys, other = other, keys
	}
	key, private := firstOf(secret, keys)
	if key == "" {
		return nil, lacksSigningKey(secret, signing.Format, keys, other)
	}
	sign, err := r.readSigner(signing.Format, private, secret.Data[keySigningPassphrase])
	if err != nil {
		return nil, unusableKey(secret, key, err)
	}
	return func(commit []byte) (string, error) {
		made, err := sign(commit)
		if err != nil {
			return "", unusableKey(secret, key, err)
		}
		return made, nil
	}, nil
}

func (r *repositories) readSigner(format v1alpha1.SigningFormat, private, passphrase []byte) (signature.Signer, error) {
	if format == v1alpha1.SigningFormatOpenPGP {
		return signature.OpenPGP(private, passphrase, r.now)
	}
	return signature.SSH(private, passphrase)
}

// lacksSigningKey returns the error for a missing key, with a hint if the Secret has a key of the other format.
func lacksSigningKey(secret *corev1.Secret, format v1alpha1.SigningFormat, keys, other []string) error {
	hint := ""
	if found, _ := firstOf(secret, other); found != "" {
		hint = "; it has " + found + ", which is of the other format"
	}
	return lacksKey(secret, keys,
		fmt.Sprintf("the key %s to sign in the format %s (spec.commit.signing)%s", strings.Join(keys, " or "), format, hint))
}

func unusableKey(secret *corev1.Secret, key string, err error) error {
	return refused(v1alpha1.ReasonSigningKeyUnusable, "key %s of Secret %s/%s cannot sign (spec.commit.signing): %v",
		key, secret.Namespace, secret.Name, err)
}
