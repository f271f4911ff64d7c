// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"os"
	"testing"
)

// NeedRoot leaves a test out that makes containers, unless it runs as root: they have mounts, networks and users of their own.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes containers: run it with sudo")
	}
}
