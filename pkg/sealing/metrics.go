// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metric"
)

// The label store is objects or work.
var (
	staleRows = metric.NewGaugeVec("sealing_stale_rows",
		"Rows that the last walk through the store left sealed under another key than the one for writing. Only the leader walks.",
		"store")
	rewrittenRows = metric.NewCounterVec("sealing_rewritten_rows_total",
		"Rows rewritten because they were sealed under another key than the one for writing, or not sealed.", "store")
	walked = metric.NewGaugeVec("sealing_walk_timestamp_seconds", "When the last whole walk through the store began, in seconds since 1970.", "store")
)

func init() {
	legacyregistry.MustRegister(staleRows, rewrittenRows, walked)
}
