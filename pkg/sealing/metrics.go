// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The label store is objects or work.
var (
	staleRows = newGauge("sealing_stale_rows",
		"Rows that the last walk through the store left sealed under another key than the one for writing. Only the leader walks.")
	unreadableRows = newGauge("sealing_unreadable_rows",
		"Rows that the last walk through the store could not open. Only the leader walks.")
	rewrittenRows = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "sealing_rewritten_rows_total", StabilityLevel: metrics.ALPHA,
		Help: "Rows rewritten because they were sealed under another key than the one for writing, or not sealed.",
	}, []string{"store"})
	walked = newGauge("sealing_walk_timestamp_seconds", "When the last whole walk through the store began, in seconds since 1970.")
)

func newGauge(name, help string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, []string{"store"})
}

func init() {
	legacyregistry.MustRegister(staleRows, unreadableRows, rewrittenRows, walked)
}
