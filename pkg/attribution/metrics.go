// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

var (
	hits = slipmetrics.NewCounterVec("enrich_hits_total",
		"Changes whose author is known, by whose changes they are and by the signal that told: audit, admission or managed-fields.",
		"controller", "signal")
	misses = slipmetrics.NewCounterVec("enrich_misses_total",
		"Changes whose author is unknown.", "controller")
	contradictions = slipmetrics.NewCounterVec("enrich_contradictions_total",
		"Changes whose author is unknown because reports about them disagree.", "controller")
	lagSeconds = slipmetrics.NewGaugeVec("attribution_lag_seconds",
		"How much later than a change the report of who made it comes at most, as seen lately, by signal.", "controller", "signal")
)

func init() { legacyregistry.MustRegister(hits, misses, contradictions, lagSeconds) }

// meters are the metrics of one controller, each looked up once.
type meters struct {
	hits                   map[Signal]metrics.CounterMetric
	misses, contradictions metrics.CounterMetric
	lag                    map[Signal]metrics.GaugeMetric
}

func newMeters(controller string) meters {
	m := meters{
		hits: map[Signal]metrics.CounterMetric{}, lag: map[Signal]metrics.GaugeMetric{},
		misses: misses.WithLabelValues(controller), contradictions: contradictions.WithLabelValues(controller),
	}
	for _, signal := range []Signal{Audit, Admission, ManagedFields} {
		m.hits[signal] = hits.WithLabelValues(controller, string(signal))
	}
	for _, signal := range []Signal{Audit, Admission} {
		m.lag[signal] = lagSeconds.WithLabelValues(controller, string(signal))
	}
	return m
}

// count takes note of what a change was delivered with.
func (m meters) count(v verdict) {
	if v.contradiction {
		m.contradictions.Inc()
	}
	if v.author.Signal == Unknown {
		m.misses.Inc()
		return
	}
	m.hits[v.author.Signal].Inc()
}
