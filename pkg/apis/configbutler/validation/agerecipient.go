// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An age X25519 recipient is the public key's 32 bytes in Bech32 (BIP 173) under the prefix "age": 52 characters of data
// and 6 of checksum.
const (
	ageRecipientPrefix = "age1"
	ageRecipientLength = len(ageRecipientPrefix) + 52 + 6
	ageIdentityPrefix  = "AGE-SECRET-KEY-"
	bech32Alphabet     = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
)

func validateAgeRecipient(recipient string, path *field.Path) field.ErrorList {
	switch {
	case strings.HasPrefix(strings.ToUpper(recipient), ageIdentityPrefix):
		return field.ErrorList{field.Invalid(path, "***",
			"is a private key; it must be the public key (age1...), and the private one counts as disclosed")}
	case len(recipient) != ageRecipientLength || !strings.HasPrefix(recipient, ageRecipientPrefix) ||
		!hasBech32Checksum("age", recipient[len(ageRecipientPrefix):]):
		return field.ErrorList{field.Invalid(path, recipient,
			"must be an age public key: age1 and 58 characters, as age-keygen -y prints it")}
	}
	return nil
}

// hasBech32Checksum checks the data part of a Bech32 string, so that a slip of the pen does not encrypt for nobody.
func hasBech32Checksum(prefix, data string) bool {
	values := make([]byte, 0, 2*len(prefix)+1+len(data))
	for _, c := range []byte(prefix) {
		values = append(values, c>>5)
	}
	values = append(values, 0)
	for _, c := range []byte(prefix) {
		values = append(values, c&31)
	}
	for _, c := range []byte(data) {
		value := strings.IndexByte(bech32Alphabet, c)
		if value < 0 {
			return false
		}
		values = append(values, byte(value))
	}
	return bech32Residue(values) == 1
}

// bech32Residue is the remainder of the values, as a polynomial over GF(32), divided by the code's generator.
func bech32Residue(values []byte) uint32 {
	residue := uint32(1)
	for _, value := range values {
		top := residue >> 25
		residue = residue&0x1ffffff<<5 ^ uint32(value)
		for i, generator := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				residue ^= generator
			}
		}
	}
	return residue
}
