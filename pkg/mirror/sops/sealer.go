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

// purpose keeps what is drawn here apart from whatever else might be drawn from a seed. Another purpose, or another
// order of what is hashed, encrypts every file anew. A version of which the rule leaves less readable needs another
// purpose: by the Fingerprint it is known that what waits to be pushed was written by the rule of before.
const purpose = "slipstream sops v2"

// Sealer writes objects as files for some recipients. It may be used concurrently.
type Sealer struct {
	seed       []byte
	recipients []recipient
}

// NewSealer returns the sealer for recipients, which are public keys of age in any order. The seed has to be random,
// SeedSize bytes long, and kept.
func NewSealer(seed []byte, recipients []string) (*Sealer, error) {
	switch {
	case len(seed) != SeedSize:
		return nil, fmt.Errorf("the seed has %d bytes and must have %d", len(seed), SeedSize)
	case len(recipients) == 0:
		return nil, errors.New("there are no recipients")
	}
	s := &Sealer{seed: slices.Clone(seed)}
	for _, text := range slices.Compact(slices.Sorted(slices.Values(recipients))) {
		parsed, err := parseRecipient(text)
		if err != nil {
			return nil, err
		}
		s.recipients = append(s.recipients, parsed)
	}
	return s, nil
}

// Recipients are the public keys that files are written for, in order.
func (s *Sealer) Recipients() []string {
	texts := make([]string, len(s.recipients))
	for i, r := range s.recipients {
		texts[i] = r.text
	}
	return texts
}

// Fingerprint is the same for sealers that give every object the same file, and tells nothing else.
func (s *Sealer) Fingerprint() string {
	return hex.EncodeToString(s.draws(nil, nil)[:8])
}

// Seal returns the file of an object: the same bytes for the same object as far as manifest.Render goes.
func (s *Sealer) Seal(object *unstructured.Unstructured) ([]byte, error) {
	plain, err := manifest.Render(object)
	if err != nil {
		return nil, err
	}
	content, err := manifest.Canonical(object)
	if err != nil {
		return nil, err
	}
	r := ruleOf(content.Object)
	f, err := newFile(s.draws(r, plain), r, s.recipients)
	if err != nil {
		return nil, err
	}
	return manifest.RenderEncrypted(object, f)
}

// draws is what is unpredictable about the file of a content. The rule is part of it: nonces are drawn by the order of what is
// encrypted, so the same content by another rule would otherwise have one nonce for two values, which gives both away.
func (s *Sealer) draws(r rule, plain []byte) draws {
	mac := hmac.New(sha256.New, s.seed)
	// No line of these is empty, so the content begins after the first that is.
	mac.Write(fmt.Appendf(nil, "%s\n%s\n%q\n\n", purpose, strings.Join(s.Recipients(), "\n"), r))
	mac.Write(plain)
	return mac.Sum(nil)
}

// draws gives random-looking bytes by name. Nobody can tell them without both the seed and the content.
type draws []byte

// bytes returns n bytes, others for every name.
func (d draws) bytes(name string, n int) ([]byte, error) {
	drawn, err := hkdf.Expand(sha256.New, d, name, n)
	if err != nil {
		return nil, fmt.Errorf("draw the %s: %w", name, err)
	}
	return drawn, nil
}
