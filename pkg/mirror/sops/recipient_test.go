// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

func TestCheckRecipient(t *testing.T) {
	good := newIdentity(t).Recipient().String()
	for name, test := range map[string]struct {
		recipient string
		ok        bool
	}{
		"a public key":       {good, true},
		"nothing":            {"", false},
		"a typo":             {good[:20] + "1" + good[21:], false},
		"another letter":     {strings.Replace(good, good[10:11], map[bool]string{true: "q", false: "p"}[good[10] != 'q'], 1), false},
		"too short":          {good[:61], false},
		"upper case":         {strings.ToUpper(good), false},
		"blanks":             {" " + good, false},
		"a private key":      {newIdentity(t).String(), false},
		"a hybrid key":       {"age1pq1" + strings.Repeat("q", 55), false},
		"a key of a plugin":  {"age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t", false},
		"a key of SSH":       {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl", false},
		"a key for everyone": {"age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z", false},
	} {
		if err := sops.CheckRecipient(test.recipient); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewEncrypterRefuses(t *testing.T) {
	good := newIdentity(t).Recipient().String()
	for name, test := range map[string]struct {
		seed       []byte
		recipients []string
	}{
		"no recipients": {seed, nil},
		"a bad one":     {seed, []string{good, "age1"}},
		"no seed":       {nil, []string{good}},
		"a short seed":  {seed[1:], []string{good}},
	} {
		if _, err := sops.NewEncrypter(test.seed, test.recipients); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
