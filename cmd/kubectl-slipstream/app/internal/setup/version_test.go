// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/setup"
)

func TestVersionsFit(t *testing.T) {
	for _, test := range []struct {
		plugin, server string
		fit, failed    bool
	}{
		{plugin: "v0.1.0", server: "v0.1.7", fit: true},
		{plugin: "v0.1.0", server: "v0.2.0-rc.1", fit: true},
		{plugin: "v0.3.0", server: "v0.2.9", fit: true},
		{plugin: "v0.1.0", server: "v0.3.0"},
		{plugin: "v0.3.0", server: "v0.1.0"},
		{plugin: "v1.0.0", server: "v0.0.0"},
		{plugin: "v0.0.0-20261126193203-37603187abcd+dirty", server: "v0.1.0", fit: true},
		{plugin: "(devel)", server: "v0.1.0", failed: true},
		{plugin: "v0.1.0", server: "v1alpha1", failed: true},
	} {
		if fit, err := setup.VersionsFit(test.plugin, test.server); fit != test.fit || (err != nil) != test.failed {
			t.Errorf("%s with %s: %t, %v", test.plugin, test.server, fit, err)
		}
	}
}
