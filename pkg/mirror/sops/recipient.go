// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/ecdh"
	"fmt"
	"strings"

	"filippo.io/age"
)

// CheckRecipient validates an age recipient. Only X25519 recipients (prefix age1) are valid, not those of SSH, of
// plugins, or hybrid ones.
func CheckRecipient(text string) error {
	r, err := parseRecipient(text)
	if err != nil {
		return err
	}
	return r.checkOrder()
}

// recipient is an age recipient that a file is encrypted for.
type recipient struct {
	text string
	key  *ecdh.PublicKey
}

const (
	recipientPrefix = "age1"
	// A key of 32 bytes takes 52 characters of 5 bits; 6 more are a checksum.
	keyCharacters    = 52
	recipientLength  = len(recipientPrefix) + keyCharacters + 6
	bech32Characters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
)

func parseRecipient(text string) (recipient, error) {
	// The library verifies the checksum. The length and the lower-case prefix exclude keys of plugins and in upper case.
	if _, err := age.ParseX25519Recipient(text); err != nil || len(text) != recipientLength || !strings.HasPrefix(text, recipientPrefix) {
		return recipient{}, fmt.Errorf("%q is no public key of age (age1 and 58 characters)", text)
	}
	key, err := ecdh.X25519().NewPublicKey(decodeKey(text[len(recipientPrefix) : len(recipientPrefix)+keyCharacters]))
	if err != nil {
		return recipient{}, fmt.Errorf("read the public key %s: %w", text, err)
	}
	return recipient{text: text, key: key}, nil
}

// decodeKey decodes the bech32 characters of a key whose checksum is valid.
func decodeKey(characters string) []byte {
	var key []byte
	bits, held := uint32(0), 0
	for _, c := range []byte(characters) {
		bits, held = bits<<5|uint32(strings.IndexByte(bech32Characters, c)), held+5
		if held >= 8 {
			held -= 8
			key = append(key, byte(bits>>held))
		}
	}
	return key
}

// checkOrder returns an error for keys of low order, for which anyone could decrypt the file.
func (r recipient) checkOrder() error {
	private, err := ecdh.X25519().NewPrivateKey([]byte("any thirty-two bytes do for this"))
	if err != nil {
		return fmt.Errorf("make a private key: %w", err)
	}
	if _, err := private.ECDH(r.key); err != nil {
		return fmt.Errorf("%s protects nothing", r.text)
	}
	return nil
}
