// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

const (
	// version is the version of SOPS that defines the format.
	version = "3.13.3"
	// lastModified is required by the format, and constant.
	lastModified = "1970-01-01T00:00:00Z"
	// dataKeySize and nonceSize are those of SOPS, in bytes.
	dataKeySize = 32
	nonceSize   = 32
	// dataKeyName is the name by which the data key is derived.
	dataKeyName = "data key"
)

// file encrypts one object in the format of SOPS.
type file struct {
	key        pseudorandomKey
	rule       rule
	recipients []recipient
	dataKey    []byte
	cipher     cipher.AEAD
	// values counts the encrypted values; digest is over all values.
	values int
	digest hash.Hash
}

var _ manifest.Encrypter = &file{}

func newFile(prk pseudorandomKey, r rule, recipients []recipient) (*file, error) {
	key, err := prk.derive(dataKeyName, dataKeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("prepare the cipher: %w", err)
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, nonceSize)
	if err != nil {
		return nil, fmt.Errorf("prepare the cipher: %w", err)
	}
	return &file{key: prk, rule: r, recipients: recipients, dataKey: key, cipher: gcm, digest: sha512.New()}, nil
}

// Value returns the value, encrypted if the rule covers it.
func (f *file) Value(path []string, value any) (any, error) {
	text, kind, err := textOf(value)
	if err != nil {
		return nil, err
	}
	f.digest.Write([]byte(text))
	if !f.rule.covers(path) {
		return value, nil
	}
	return f.encrypt(text, kind, strings.Join(path, ":")+":")
}

// textOf returns the text that SOPS encrypts and digests for a value, and its name of the type.
func textOf(value any) (text, kind string, err error) {
	switch value := value.(type) {
	case string:
		return value, "str", nil
	case int64:
		return strconv.FormatInt(value, 10), "int", nil
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), "float", nil
	case bool:
		if value {
			return "True", "bool", nil
		}
		return "False", "bool", nil
	}
	return "", "", fmt.Errorf("a value of Go type %T cannot be written", value)
}

// encrypt returns the encrypted text in the notation of SOPS, authenticated with additionalData.
func (f *file) encrypt(text, kind, additionalData string) (string, error) {
	if text == "" {
		return "", nil // SOPS does not encrypt empty values.
	}
	f.values++
	nonce, err := f.key.derive("nonce "+strconv.Itoa(f.values), nonceSize)
	if err != nil {
		return "", err
	}
	encrypted := f.cipher.Seal(nil, nonce, []byte(text), []byte(additionalData))
	end, encode := len(encrypted)-f.cipher.Overhead(), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", encode(encrypted[:end]), encode(nonce),
		encode(encrypted[end:]), kind), nil
}

// Fields returns the metadata block of SOPS.
func (f *file) Fields() (map[string]any, error) {
	code, err := f.encrypt(fmt.Sprintf("%X", f.digest.Sum(nil)), "str", lastModified)
	if err != nil {
		return nil, err
	}
	keys := make([]any, len(f.recipients))
	for i, r := range f.recipients {
		wrapped, err := r.wrap(f.dataKey, f.key)
		if err != nil {
			return nil, err
		}
		keys[i] = map[string]any{"recipient": r.text, "enc": wrapped}
	}
	return map[string]any{"sops": map[string]any{
		"age": keys, "encrypted_regex": f.rule.String(), "lastmodified": lastModified, "mac": code, "version": version,
	}}, nil
}
