// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testkit

import (
	"os"
	"testing"
)

// OpenTerminal skips the test: terminals are opened on Linux only.
func OpenTerminal(t testing.TB, _, _ uint16) (screen, terminal *os.File) {
	t.Helper()
	t.Skip("terminals are opened on Linux only")
	return nil, nil
}
