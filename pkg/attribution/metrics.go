// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	hits = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "enrich_hits_total", StabilityLevel: metrics.ALPHA,
		Help: "Changes whose author is known, by the signal that told: audit, admission or managed-fields.",
	}, []string{"signal"})
	misses = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "enrich_misses_total", StabilityLevel: metrics.ALPHA,
		Help: "Changes whose author is unknown.",
	})
	contradictions = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "enrich_contradictions_total", StabilityLevel: metrics.ALPHA,
		Help: "Changes whose author is unknown because reports about them disagree.",
	})
	lagSeconds = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: "attribution_lag_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How much later than a change the report of who made it comes at most, as seen lately, by signal.",
	}, []string{"signal"})
)

// hitsOf has the counters of hits by signal, each looked up once.
var hitsOf = map[Signal]metrics.CounterMetric{}

func init() {
	legacyregistry.MustRegister(hits, misses, contradictions, lagSeconds)
	for _, signal := range []Signal{Audit, Admission, ManagedFields} {
		hitsOf[signal] = hits.WithLabelValues(string(signal))
	}
}

// count takes note of what a change was delivered with.
func count(v verdict) {
	if v.contradiction {
		contradictions.Inc()
	}
	if v.author.Signal == Unknown {
		misses.Inc()
		return
	}
	hitsOf[v.author.Signal].Inc()
}
