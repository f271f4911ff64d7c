// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// Server builds the server with the build tag and the linker flags of the image, and returns its path. A development build has 25 MiB more
// of code in memory.
func Server(t testing.TB) (path string) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	if path, err = programs.Released(t.Context(), root, "cmd/slipstream"); err != nil {
		t.Fatal(err)
	}
	return path
}
