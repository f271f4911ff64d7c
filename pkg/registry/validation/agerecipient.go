// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const ageIdentityPrefix = "AGE-SECRET-KEY-"

func validateAgeRecipient(recipient string, path *field.Path) field.ErrorList {
	if strings.HasPrefix(strings.ToUpper(recipient), ageIdentityPrefix) {
		return field.ErrorList{field.Invalid(path, "***",
			"is a private key; it must be the public key (age1...), and the private one counts as disclosed")}
	}
	if err := sops.CheckRecipient(recipient); err != nil {
		return field.ErrorList{field.Invalid(path, recipient,
			"must be an age public key for X25519: age1 and 58 characters, as age-keygen -y prints it; "+
				"keys of SSH and plugins, and hybrid ones, are not supported")}
	}
	return nil
}
