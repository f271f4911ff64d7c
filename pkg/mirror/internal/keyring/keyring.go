// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

// The Secrets in the server's namespace, and their keys.
const (
	PairName     = "slipstream-age"
	PairKey      = "age.agekey"
	SeedName     = "slipstream-age-seed"
	keySeed      = "seed"
	keyRecipient = "recipient"
)

// Keys are the keys with which Secrets are encrypted.
type Keys struct {
	// Seed is the seed of derived keys. Without one nothing can be encrypted.
	Seed []byte
	// SeedError is the error of the seed's Secret. Seed may be set beside it, from an earlier read.
	SeedError error
	// Recipient is the public key of the server's key pair; empty if there is none, or it was not requested.
	Recipient string
	// PairSecret is the namespace and name of the Secret with the private key.
	PairSecret string
	// PairError is the error of the key pair's Secret. Recipient may be set beside it, from an earlier read.
	PairError error
}

// Equal reports whether the keys and their errors are the same.
func (k Keys) Equal(other Keys) bool {
	return bytes.Equal(k.Seed, other.Seed) && k.Recipient == other.Recipient && k.PairSecret == other.PairSecret &&
		fmt.Sprint(k.SeedError, k.PairError) == fmt.Sprint(other.SeedError, other.PairError)
}

// Ring reads the keys, and creates those that have never existed. It is not safe for concurrent use.
type Ring struct {
	secrets   corev1client.SecretInterface
	namespace string
	// known has the keys that were read last.
	known Keys
}

// New returns the key ring of the server in the namespace.
func New(client corev1client.SecretsGetter, namespace string) *Ring {
	return &Ring{secrets: client.Secrets(namespace), namespace: namespace}
}

// Read reads the keys, the server's key pair included if pair is set. A key that cannot be read stays as it was, with the
// error beside it.
func (r *Ring) Read(ctx context.Context, pair bool) Keys {
	keys := Keys{Seed: r.known.Seed, Recipient: r.known.Recipient, PairSecret: r.namespace + "/" + PairName}
	// Another replica may create the Secrets at the same time. The retry reads what the first has created.
	keys.SeedError = retry.OnError(retry.DefaultRetry, raced, func() error {
		keys.PairError = nil
		state, err := r.readSeed(ctx)
		if err != nil {
			return err
		}
		keys.Seed, keys.Recipient = state.Data[keySeed], string(state.Data[keyRecipient])
		if !pair {
			return nil
		}
		keys.PairError = r.readPair(ctx, state, &keys.Recipient)
		if raced(keys.PairError) {
			return keys.PairError
		}
		return nil
	})
	r.known = Keys{Seed: keys.Seed, Recipient: keys.Recipient}
	return keys
}

func raced(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
}

// readSeed returns the Secret of the seed, which it creates if it does not exist.
func (r *Ring) readSeed(ctx context.Context) (*corev1.Secret, error) {
	name := r.namespace + "/" + SeedName
	secret, err := r.secrets.Get(ctx, SeedName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = r.createSeed(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the Secret %s cannot be had: %w", name, err)
	}
	if len(secret.Data[keySeed]) != sops.SeedSize {
		return nil, fmt.Errorf("the Secret %s needs %d bytes under %s: put it back, or delete it to have every Secret encrypted anew", name,
			sops.SeedSize, keySeed)
	}
	if recipient := string(secret.Data[keyRecipient]); recipient != "" {
		if err := sops.CheckRecipient(recipient); err != nil {
			return nil, fmt.Errorf("the Secret %s is not as it was, under %s: %w", name, keyRecipient, err)
		}
	}
	return secret, nil
}

// createSeed creates the Secret of the seed, with the known content if there is one.
func (r *Ring) createSeed(ctx context.Context) (*corev1.Secret, error) {
	data := map[string][]byte{keySeed: r.known.Seed}
	if data[keySeed] == nil {
		data[keySeed] = make([]byte, sops.SeedSize)
		if _, err := rand.Read(data[keySeed]); err != nil {
			return nil, fmt.Errorf("generate a seed: %w", err)
		}
	}
	if r.known.Recipient != "" {
		data[keyRecipient] = []byte(r.known.Recipient)
	}
	return r.create(ctx, SeedName, data)
}

// create creates a Secret that is excluded from mirrors.
func (r *Ring) create(ctx context.Context, name string, data map[string][]byte) (*corev1.Secret, error) {
	return r.secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace, Annotations: map[string]string{v1alpha1.AnnotationMirror: "false"}},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}, metav1.CreateOptions{})
}

// record saves the public key that files are encrypted for from now on.
func (r *Ring) record(ctx context.Context, state *corev1.Secret, recipient string) error {
	changed := state.DeepCopy()
	changed.Data = maps.Clone(state.Data)
	changed.Data[keyRecipient] = []byte(recipient)
	_, err := r.secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}
