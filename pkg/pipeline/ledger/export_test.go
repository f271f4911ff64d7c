// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

// SetMaxBatchBytes sets the maximum size of the batches that are assembled from now on.
func (l *Ledger) SetMaxBatchBytes(number int) { l.maxBatchBytes = number }
