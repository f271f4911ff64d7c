// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history has the benchmarks of Changes: what it costs to record them, and to list them among many.
package history
