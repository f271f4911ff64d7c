// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

// Prune deletes what exceeds limits.
var Prune = (*History).prune
