// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// SeedSize is the length of a seed in bytes.
const SeedSize = 32

// purpose separates keys derived here from any other use of the seed. A change of the purpose, or of the order of what is
// hashed, encrypts every file anew. A version whose rule leaves less readable needs a new purpose: the Fingerprint then
// shows that a pending change was encrypted by the old rule.
const purpose = "slipstream sops v2"

// Encrypter encrypts objects as files for a set of recipients. It is safe for concurrent use.
type Encrypter struct {
	seed       []byte
	recipients []recipient
}

// NewEncrypter returns the encrypter for age recipients, in any order. The seed must be random, SeedSize bytes long, and
// persistent.
func NewEncrypter(seed []byte, recipients []string) (*Encrypter, error) {
	switch {
	case len(seed) != SeedSize:
		return nil, fmt.Errorf("the seed has %d bytes and must have %d", len(seed), SeedSize)
	case len(recipients) == 0:
		return nil, errors.New("there are no recipients")
	}
	s := &Encrypter{seed: slices.Clone(seed)}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(recipients))) {
		parsed, err := parseRecipient(text)
		if err != nil {
			return nil, err
		}
		s.recipients = append(s.recipients, parsed)
	}
	return s, nil
}

// Recipients returns the age recipients, sorted.
func (e *Encrypter) Recipients() []string {
	texts := make([]string, len(e.recipients))
	for i, r := range e.recipients {
		texts[i] = r.text
	}
	return texts
}

// Fingerprint identifies the encrypter: encrypters with the same fingerprint write the same file for the same object. It
// does not reveal the seed.
func (e *Encrypter) Fingerprint() string {
	return hex.EncodeToString(e.fileKey(nil, nil)[:8])
}

// Encrypt returns the file of an object. Objects that manifest.Render renders alike give the same bytes.
func (e *Encrypter) Encrypt(object *unstructured.Unstructured) ([]byte, error) {
	plain, err := manifest.Render(object)
	if err != nil {
		return nil, err
	}
	content, err := manifest.Canonical(object)
	if err != nil {
		return nil, err
	}
	r := ruleOf(content.Object)
	f, err := newFile(e.fileKey(r, plain), r, e.recipients)
	if err != nil {
		return nil, err
	}
	return manifest.RenderEncrypted(object, f)
}

// fileKey returns the pseudorandom key of a file. The rule is part of the input: nonces are derived by the order of the
// encrypted values, so without it the same content under another rule would use one nonce for two values, which reveals
// both.
func (e *Encrypter) fileKey(r rule, plain []byte) pseudorandomKey {
	mac := hmac.New(sha256.New, e.seed)
	// None of these lines is empty, so the first empty line separates them from the content.
	mac.Write(fmt.Appendf(nil, "%s\n%s\n%q\n\n", purpose, strings.Join(e.Recipients(), "\n"), r))
	mac.Write(plain)
	return mac.Sum(nil)
}

// pseudorandomKey is the key from which HKDF derives the keys and nonces of one file. It cannot be computed without both the seed
// and the content.
type pseudorandomKey []byte

// derive returns n bytes derived for the name.
func (k pseudorandomKey) derive(name string, n int) ([]byte, error) {
	derived, err := hkdf.Expand(sha256.New, k, name, n)
	if err != nil {
		return nil, fmt.Errorf("derive the %s: %w", name, err)
	}
	return derived, nil
}
