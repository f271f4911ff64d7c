// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"testing"
)

// One nonce for two values gives both away. Nonces are drawn by the order of what is encrypted, so that a rule that encrypts more of
// the same content must not draw the same key.
func TestAnotherRuleDrawsAnotherKey(t *testing.T) {
	sealer := &Sealer{seed: make([]byte, SeedSize)}
	content := []byte("kind: Secret\n")
	drawn := map[string]string{}
	for name, r := range map[string]rule{
		"no rule": nil, "the data": {"data", "stringData"}, "one annotation": {"data", "stringData", "a"}, "another annotation": {"data", "stringData", "b"},
	} {
		key, err := sealer.draws(r, content).bytes("data key", dataKeySize)
		if err != nil {
			t.Fatal(err)
		}
		if same, taken := drawn[string(key)]; taken {
			t.Errorf("%s and %s have the same key", name, same)
		}
		drawn[string(key)] = name
		if again, err := sealer.draws(r, content).bytes("data key", dataKeySize); err != nil || !bytes.Equal(key, again) {
			t.Errorf("%s: another key each time (%v)", name, err)
		}
	}
}
