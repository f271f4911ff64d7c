// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"testing"
)

// TestRuleIsPartOfTheKey checks that another rule has another key. Nonces are derived from the order of encrypted values, so a rule that
// encrypts more values of the same content would reuse nonces with the same key, which reveals values.
func TestRuleIsPartOfTheKey(t *testing.T) {
	encrypter := &Encrypter{seed: make([]byte, SeedSize)}
	content := []byte("kind: Secret\n")
	derived := map[string]string{}
	for name, r := range map[string]rule{
		"no rule": nil, "the data": {"data", "stringData"},
		"one annotation": {"data", "stringData", "a"}, "another annotation": {"data", "stringData", "b"},
	} {
		key, err := encrypter.fileKey(r, content).derive("data key", dataKeySize)
		if err != nil {
			t.Fatal(err)
		}
		if same, taken := derived[string(key)]; taken {
			t.Errorf("rules %s and %s have the same key", name, same)
		}
		derived[string(key)] = name
		if again, err := encrypter.fileKey(r, content).derive("data key", dataKeySize); err != nil || !bytes.Equal(key, again) {
			t.Errorf("%s: key is not deterministic (%v)", name, err)
		}
	}
}
