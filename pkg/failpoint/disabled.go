// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package failpoint

// Enabled says whether this build obeys SLIPSTREAM_FAILPOINTS.
const Enabled = false

// Reach marks the step called name. It does nothing in this build.
func Reach(name string) {}
