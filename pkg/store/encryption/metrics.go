// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

// The label store is objects or work.
var (
	staleRows = metrics.NewGaugeVec("encryption_stale_rows",
		"Rows that the last walk through the store left encrypted with another key than the one for writing. Only the leader walks.",
		"store")
	rewrittenRows = metrics.NewCounterVec("encryption_rewritten_rows_total",
		"Rows rewritten because they were encrypted with another key than the one for writing, or not encrypted.", "store")
	walked = metrics.NewGaugeVec("encryption_scan_timestamp_seconds",
		"Start time of the last complete walk through the store, in seconds since 1970.", "store")
)

func init() {
	legacyregistry.MustRegister(staleRows, rewrittenRows, walked)
}
