// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"os"
	"testing"
)

// NeedRoot skips a test that starts containers unless it runs as root, which their mounts, networks and users require.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers need root: run the test with sudo")
	}
}
