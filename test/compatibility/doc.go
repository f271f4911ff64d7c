// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compatibility tests that this version of the server reads what an earlier one has stored, and continues its work.
package compatibility
