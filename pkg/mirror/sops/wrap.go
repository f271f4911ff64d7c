// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age/armor"
	"golang.org/x/crypto/chacha20poly1305"
)

// The sizes of the parts of an age file, in bytes (age-encryption.org/v1).
const (
	ageFileKeySize = 16
	ageNonceSize   = 16
)

// wrap returns a key as an armored age file for one recipient. The library can only use random keys; this uses derived
// ones.
func (r recipient) wrap(key []byte, prk pseudorandomKey) (string, error) {
	fileKey, err := prk.derive("file key for "+r.text, ageFileKeySize)
	if err != nil {
		return "", err
	}
	nonce, err := prk.derive("payload nonce for "+r.text, ageNonceSize)
	if err != nil {
		return "", err
	}
	header, err := r.header(fileKey, prk)
	if err != nil {
		return "", fmt.Errorf("write the header for %s: %w", r.text, err)
	}
	body, err := payload(fileKey, nonce, key)
	if err != nil {
		return "", fmt.Errorf("encrypt the key for %s: %w", r.text, err)
	}
	return armored(slices.Concat(header, nonce, body))
}

// header returns the header of the age file, with the file key encrypted for the recipient.
func (r recipient) header(fileKey []byte, prk pseudorandomKey) ([]byte, error) {
	share, wrapped, err := r.wrapFileKey(fileKey, prk)
	if err != nil {
		return nil, err
	}
	encode := base64.RawStdEncoding.EncodeToString
	header := fmt.Sprintf("age-encryption.org/v1\n-> X25519 %s\n%s\n---", encode(share), encode(wrapped))
	macKey, err := hkdf.Key(sha256.New, fileKey, nil, "header", sha256.Size)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, macKey)
	mac.Write([]byte(header))
	return []byte(header + " " + encode(mac.Sum(nil)) + "\n"), nil
}

// wrapFileKey encrypts the file key with a key that only the recipient can compute from the share.
func (r recipient) wrapFileKey(fileKey []byte, prk pseudorandomKey) (share, wrapped []byte, err error) {
	scalar, err := prk.derive("share for "+r.text, chacha20poly1305.KeySize)
	if err != nil {
		return nil, nil, err
	}
	ephemeral, err := ecdh.X25519().NewPrivateKey(scalar)
	if err != nil {
		return nil, nil, err
	}
	secret, err := ephemeral.ECDH(r.key)
	if err != nil {
		return nil, nil, err
	}
	share = ephemeral.PublicKey().Bytes()
	key, err := hkdf.Key(sha256.New, secret, slices.Concat(share, r.key.Bytes()), "age-encryption.org/v1/X25519", chacha20poly1305.KeySize)
	if err != nil {
		return nil, nil, err
	}
	wrapped, err = encryptOnce(key, 0, fileKey)
	return share, wrapped, err
}

// payload encrypts content that fits into a single chunk.
func payload(fileKey, nonce, content []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, fileKey, nonce, "payload", chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	return encryptOnce(key, 1, content)
}

// encryptOnce encrypts with a key that is used for one message only, so the nonce can be constant: zeros and the mark of
// the last chunk.
func encryptOnce(key []byte, mark byte, content []byte) ([]byte, error) {
	aead, err := chacha20poly1305.New(key)
	if err != nil {
		return nil, err
	}
	var nonce [chacha20poly1305.NonceSize]byte
	nonce[len(nonce)-1] = mark
	return aead.Seal(nil, nonce[:], content, nil), nil
}

func armored(content []byte) (string, error) {
	var out strings.Builder
	writer := armor.NewWriter(&out)
	if _, err := bytes.NewReader(content).WriteTo(writer); err != nil {
		return "", fmt.Errorf("write as letters: %w", err)
	}
	if err := writer.Close(); err != nil {
		return "", fmt.Errorf("write as letters: %w", err)
	}
	return out.String(), nil
}
