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

// Keys are what Secrets are encrypted with.
type Keys struct {
	// Seed is what is drawn from; empty if there is none, so that nothing can be encrypted.
	Seed []byte
	// SeedTrouble is what is wrong with the Secret of the seed; a seed known from before still counts.
	SeedTrouble error
	// Recipient is the public key of the server's own pair; empty if there is none, or nobody asked for it.
	Recipient string
	// PairSecret is the namespace and name of the Secret with the private key.
	PairSecret string
	// PairTrouble is what is wrong with the Secret of the pair; a public key known from before still counts.
	PairTrouble error
}

// Equal says whether keys are the same, and what is wrong with them too.
func (k Keys) Equal(other Keys) bool {
	return bytes.Equal(k.Seed, other.Seed) && k.Recipient == other.Recipient && k.PairSecret == other.PairSecret &&
		fmt.Sprint(k.SeedTrouble, k.PairTrouble) == fmt.Sprint(other.SeedTrouble, other.PairTrouble)
}

// Ring reads the keys, and makes those that there have never been. It is not for concurrent use.
type Ring struct {
	secrets   corev1client.SecretInterface
	namespace string
	// known is what was read last, for as long as the process lives.
	known Keys
}

// New returns the ring of the server whose namespace it is.
func New(client corev1client.SecretsGetter, namespace string) *Ring {
	return &Ring{secrets: client.Secrets(namespace), namespace: namespace}
}

// Read returns the keys as they are now, the server's own pair included if pair says so. What cannot be read stays
// as it was, and the keys say why.
func (r *Ring) Read(ctx context.Context, pair bool) Keys {
	keys := Keys{Seed: r.known.Seed, Recipient: r.known.Recipient, PairSecret: r.namespace + "/" + PairName}
	// Another server may do the same at this moment: who comes second finds what the first has made.
	keys.SeedTrouble = retry.OnError(retry.DefaultRetry, raced, func() error {
		keys.PairTrouble = nil
		state, err := r.readSeed(ctx)
		if err != nil {
			return err
		}
		keys.Seed, keys.Recipient = state.Data[keySeed], string(state.Data[keyRecipient])
		if !pair {
			return nil
		}
		keys.PairTrouble = r.readPair(ctx, state, &keys.Recipient)
		if raced(keys.PairTrouble) {
			return keys.PairTrouble
		}
		return nil
	})
	r.known = Keys{Seed: keys.Seed, Recipient: keys.Recipient}
	return keys
}

func raced(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
}

// readSeed returns the Secret of the seed, which it makes if it is not there.
func (r *Ring) readSeed(ctx context.Context) (*corev1.Secret, error) {
	name := r.namespace + "/" + SeedName
	secret, err := r.secrets.Get(ctx, SeedName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = r.makeSeed(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the Secret %s cannot be had: %w", name, err)
	}
	if len(secret.Data[keySeed]) != sops.SeedSize {
		return nil, fmt.Errorf("the Secret %s needs %d bytes under %s: put it back, or delete it to have every Secret encrypted anew", name, sops.SeedSize, keySeed)
	}
	if recipient := string(secret.Data[keyRecipient]); recipient != "" {
		if err := sops.CheckRecipient(recipient); err != nil {
			return nil, fmt.Errorf("the Secret %s is not as it was, under %s: %w", name, keyRecipient, err)
		}
	}
	return secret, nil
}

// makeSeed makes the Secret of the seed, as it was if that is known.
func (r *Ring) makeSeed(ctx context.Context) (*corev1.Secret, error) {
	data := map[string][]byte{keySeed: r.known.Seed}
	if data[keySeed] == nil {
		data[keySeed] = make([]byte, sops.SeedSize)
		if _, err := rand.Read(data[keySeed]); err != nil {
			return nil, fmt.Errorf("draw a seed: %w", err)
		}
	}
	if r.known.Recipient != "" {
		data[keyRecipient] = []byte(r.known.Recipient)
	}
	return r.create(ctx, SeedName, data)
}

// create makes a Secret that no mirror takes.
func (r *Ring) create(ctx context.Context, name string, data map[string][]byte) (*corev1.Secret, error) {
	return r.secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace, Annotations: map[string]string{v1alpha1.AnnotationMirror: "false"}},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}, metav1.CreateOptions{})
}

// record writes down whom files are encrypted for from now on.
func (r *Ring) record(ctx context.Context, state *corev1.Secret, recipient string) error {
	changed := state.DeepCopy()
	changed.Data = maps.Clone(state.Data)
	changed.Data[keyRecipient] = []byte(recipient)
	_, err := r.secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}
