// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"testing"
)

// One nonce for two values gives both away. Nonces are derived by the order of what is encrypted, so that a rule that encrypts more of
// the same content must give another key.
func TestRuleIsPartOfTheKey(t *testing.T) {
	encrypter := &Encrypter{seed: make([]byte, SeedSize)}
	content := []byte("kind: Secret\n")
	derived := map[string]string{}
	for name, r := range map[string]rule{
		"no rule": nil, "the data": {"data", "stringData"}, "one annotation": {"data", "stringData", "a"}, "another annotation": {"data", "stringData", "b"},
	} {
		key, err := encrypter.fileKey(r, content).derive("data key", dataKeySize)
		if err != nil {
			t.Fatal(err)
		}
		if same, taken := derived[string(key)]; taken {
			t.Errorf("%s and %s have the same key", name, same)
		}
		derived[string(key)] = name
		if again, err := encrypter.fileKey(r, content).derive("data key", dataKeySize); err != nil || !bytes.Equal(key, again) {
			t.Errorf("%s: another key each time (%v)", name, err)
		}
	}
}
