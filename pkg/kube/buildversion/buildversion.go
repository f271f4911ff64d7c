// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buildversion returns the version of the running program.
package buildversion

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// Version returns the version of the module, such as v0.1.0, or one of the commit: v0.0.0 with time and commit, and +dirty if files
// differed from it. It is (devel) if the program was built without either, and unknown if it has no build information.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)")
}

// WithCommit returns the version, with the commit if the program was built from a work tree.
func WithCommit() string {
	text := Version()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text = fmt.Sprintf("%s (%s)", text, setting.Value)
		}
	}
	return text
}
