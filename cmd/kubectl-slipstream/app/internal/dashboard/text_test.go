// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import "testing"

// TestTextOfPatch leaves the object out of an error about a field of it.
func TestTextOfPatch(t *testing.T) {
	c := &cluster{hidden: hide("https://127.0.0.1:6443", nil)}
	const failed = `syncpolicies.configbutler.ai "" is invalid: patch: Invalid value: "{\"spec\":{\"batchWindow\":\"abc\"}}": time: invalid duration "abc"`
	if got, want := c.text(failed), `syncpolicies.configbutler.ai is invalid: time: invalid duration "abc"`; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}
