// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package failpoint

// Enabled reports whether this build reads SLIPSTREAM_FAILPOINTS.
const Enabled = false

// Reach marks the named step. It does nothing in this build.
func Reach(name string) {}
