// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests how releases are built, signed, pushed, verified and installed.
package release
