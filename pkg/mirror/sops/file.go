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
	// version is that of SOPS whose format this is.
	version = "3.13.3"
	// lastModified is required, and is always the same.
	lastModified = "1970-01-01T00:00:00Z"
	// dataKeySize and nonceSize are those of SOPS, in bytes.
	dataKeySize = 32
	nonceSize   = 32
)

// file is one file of SOPS while it is written.
type file struct {
	draws      draws
	rule       rule
	recipients []recipient
	dataKey    []byte
	cipher     cipher.AEAD
	// values counts those encrypted, digest is over all values.
	values int
	digest hash.Hash
}

var _ manifest.Encrypter = &file{}

func newFile(d draws, r rule, recipients []recipient) (*file, error) {
	key, err := d.bytes("data key", dataKeySize)
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
	return &file{draws: d, rule: r, recipients: recipients, dataKey: key, cipher: gcm, digest: sha512.New()}, nil
}

// Value encrypts a value if the rule says so.
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

// textOf is the form in which SOPS encrypts and digests a value, and what it calls its type.
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

// encrypt returns a text in the notation of SOPS. It opens only where it says that it belongs.
func (f *file) encrypt(text, kind, belongs string) (string, error) {
	if text == "" {
		return "", nil // as SOPS has it
	}
	f.values++
	nonce, err := f.draws.bytes("nonce "+strconv.Itoa(f.values), nonceSize)
	if err != nil {
		return "", err
	}
	sealed := f.cipher.Seal(nil, nonce, []byte(text), []byte(belongs))
	end, encode := len(sealed)-f.cipher.Overhead(), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", encode(sealed[:end]), encode(nonce), encode(sealed[end:]), kind), nil
}

// Fields is the block that SOPS reads.
func (f *file) Fields() (map[string]any, error) {
	code, err := f.encrypt(fmt.Sprintf("%X", f.digest.Sum(nil)), "str", lastModified)
	if err != nil {
		return nil, err
	}
	keys := make([]any, len(f.recipients))
	for i, r := range f.recipients {
		wrapped, err := r.wrap(f.dataKey, f.draws)
		if err != nil {
			return nil, err
		}
		keys[i] = map[string]any{"recipient": r.text, "enc": wrapped}
	}
	return map[string]any{"sops": map[string]any{
		"age": keys, "encrypted_regex": f.rule.String(), "lastmodified": lastModified, "mac": code, "version": version,
	}}, nil
}
