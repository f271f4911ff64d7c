// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"encoding/base64"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// TestShortSecretsAreNotRemoved checks that a secret of less than four bytes stays where it occurs by chance, and that the header in which
// it is sent does not.
func TestShortSecretsAreNotRemoved(t *testing.T) {
	header := base64.StdEncoding.EncodeToString([]byte("bot:b"))
	for _, test := range []struct{ password, text, want string }{
		{"b", "a/b/nope does not exist", "a/b/nope does not exist"},
		{"a b", "a/a b/nope and a%20b", "a/a b/nope and [REDACTED]"},
		{"b", "not Basic " + header, "not Basic [REDACTED]"},
		{"pa55", "a/pa55/nope", "a/[REDACTED]/nope"},
		{"", "a/b/nope", "a/b/nope"},
	} {
		if got := (gitrepo.Credentials{Username: "bot", Password: test.password}).Scrub(test.text); got != test.want {
			t.Errorf("password %q: got %q, want %q", test.password, got, test.want)
		}
	}
}
