// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// OpenPGP returns a signer with an armored OpenPGP private key, as `gpg --armor --export-secret-keys` prints it. Of several
// keys the first that can sign is used. The passphrase decrypts it if it is encrypted. Signing fails once the key has
// expired at the time that now returns.
func OpenPGP(key, passphrase []byte, now func() time.Time) (Signer, error) {
	if err := checkSize(key); err != nil {
		return nil, err
	}
	entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(key))
	if err != nil || len(entities) == 0 {
		return nil, errArmor
	}
	entity, chosen, err := choose(entities, now())
	if err != nil {
		return nil, err
	}
	if chosen.PrivateKey.Encrypted {
		if len(passphrase) == 0 {
			return nil, errLocked
		}
		if err := checkDerivation(chosen.PrivateKey); err != nil {
			return nil, err
		}
		if err := chosen.PrivateKey.Decrypt(passphrase); err != nil {
			return nil, errPassphrase
		}
	}
	by := chosen.PrivateKey.KeyId
	return func(commit []byte) (string, error) { return signOpenPGP(entity, by, now, commit) }, nil
}

func signOpenPGP(entity *openpgp.Entity, by uint64, now func() time.Time, commit []byte) (string, error) {
	at := now()
	if _, valid := entity.SigningKeyById(at, by); !valid {
		return "", unusable(entity, at)
	}
	var armored strings.Builder
	err := openpgp.ArmoredDetachSign(&armored, entity, bytes.NewReader(commit), &packet.Config{
		DefaultHash: crypto.SHA512, SigningKeyId: by, Time: func() time.Time { return at },
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
