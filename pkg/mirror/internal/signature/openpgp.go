// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// OpenPGP returns a signer with armored OpenPGP private keys, as `gpg --armor --export-secret-keys` prints them, in one
// export or several. Each signature is made with the first of them that can sign at the time that now returns, so that the next key replaces one
// that expires. The passphrase decrypts them if they are encrypted. It is an error if none can sign now.
func OpenPGP(key, passphrase []byte, now func() time.Time) (Signer, error) {
	if err := checkSize(key); err != nil {
		return nil, err
	}
	var entities openpgp.EntityList
	for _, block := range exports(key) {
		read, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(block))
		if err != nil || len(read) == 0 {
			return nil, errArmor
		}
		entities = append(entities, read...)
	}
	ring := &keyRing{entities: entities, passphrase: passphrase}
	if _, _, err := ring.at(now()); err != nil {
		return nil, err
	}
	return func(commit []byte) (string, error) { return ring.sign(commit, now()) }, nil
}

// keyRing has private keys, of which those that were used are decrypted.
type keyRing struct {
	passphrase []byte

	mu       sync.Mutex
	entities openpgp.EntityList
}

// at returns the key that signs at a time.
func (r *keyRing) at(now time.Time) (*openpgp.Entity, openpgp.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entity, chosen, err := choose(r.entities, now)
	if err != nil || !chosen.PrivateKey.Encrypted {
		return entity, chosen, err
	}
	if len(r.passphrase) == 0 {
		return nil, chosen, errLocked
	}
	if err := checkDerivation(chosen.PrivateKey); err != nil {
		return nil, chosen, err
	}
	if err := chosen.PrivateKey.Decrypt(r.passphrase); err != nil {
		return nil, chosen, errPassphrase
	}
	return entity, chosen, nil
}

func (r *keyRing) sign(commit []byte, at time.Time) (string, error) {
	entity, chosen, err := r.at(at)
	if err != nil {
		return "", err
	}
	var armored strings.Builder
	err = openpgp.ArmoredDetachSign(&armored, entity, bytes.NewReader(commit), &packet.Config{
		DefaultHash: crypto.SHA512, SigningKeyId: chosen.PrivateKey.KeyId, Time: func() time.Time { return at },
	})
	if err != nil {
		return "", fmt.Errorf("sign by OpenPGP key: %w", err)
	}
	return armored.String(), nil
}

// choose returns the first key that can sign now and has a private part. In an export of subkeys the primary key has none.
func choose(entities openpgp.EntityList, now time.Time) (*openpgp.Entity, openpgp.Key, error) {
	for _, entity := range entities {
		if key, found := newest(entity, now); found {
			return entity, key, nil
		}
	}
	return nil, openpgp.Key{}, unusable(entities[0], now)
}

// newest returns the newest signing subkey, or the primary key if there is none.
func newest(entity *openpgp.Entity, now time.Time) (openpgp.Key, bool) {
	var best openpgp.Key
	for _, subkey := range entity.Subkeys {
		key, valid := entity.SigningKeyById(now, subkey.PublicKey.KeyId)
		if valid && private(key) && (best.PublicKey == nil || key.PublicKey.CreationTime.After(best.PublicKey.CreationTime)) {
			best = key
		}
	}
	if best.PublicKey != nil {
		return best, true
	}
	key, valid := entity.SigningKeyById(now, entity.PrimaryKey.KeyId)
	return key, valid && private(key)
}

func private(key openpgp.Key) bool { return key.PrivateKey != nil && !key.PrivateKey.Dummy() }

// unusable returns the reason why none of an entity's keys can sign.
func unusable(entity *openpgp.Entity, now time.Time) error {
	name := entity.PrimaryKey.KeyIdString()
	own, _ := entity.PrimarySelfSignature()
	switch {
	case entity.PrivateKey == nil:
		return fmt.Errorf("OpenPGP key %s is a public key; export the private one", name)
	case entity.Revoked(now):
		return fmt.Errorf("OpenPGP key %s is revoked", name)
	case entity.PrimaryKey.CreationTime.After(now):
		return fmt.Errorf("OpenPGP key %s is dated in the future: %s", name, entity.PrimaryKey.CreationTime.UTC().Format(time.RFC3339))
	case own != nil && entity.PrimaryKey.KeyExpired(own, now):
		lifetime := time.Duration(*own.KeyLifetimeSecs) * time.Second
		return fmt.Errorf("OpenPGP key %s expired at %s", name, entity.PrimaryKey.CreationTime.Add(lifetime).UTC().Format(time.RFC3339))
	default:
		return fmt.Errorf("OpenPGP key %s has no part that may sign now", name)
	}
}
