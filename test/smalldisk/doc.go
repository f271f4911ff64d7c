// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package smalldisk provides tests with a small disk, on Linux only.
package smalldisk
