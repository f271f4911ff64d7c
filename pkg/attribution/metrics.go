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
		"Changes whose author is known, by controller and by signal: audit, admission or managed-fields.",
		"controller", "signal")
	misses = slipmetrics.NewCounterVec("enrich_misses_total",
		"Changes whose author is unknown.", "controller")
	contradictions = slipmetrics.NewCounterVec("enrich_contradictions_total",
		"Changes whose author is unknown because facts about them disagree.", "controller")
	lagSeconds = slipmetrics.NewGaugeVec("attribution_lag_seconds",
		"Maximum time between a change and the arrival of the fact about its author, as measured recently, by signal.", "controller", "signal")
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

// count counts the verdict of a delivered change.
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

// setLag sets the lag of the API servers' audit and admission.
func (m meters) setLag(s *sources) {
	m.lag[Audit].Set(s.audit.lag.Seconds())
	m.lag[Admission].Set(s.admission.lag.Seconds())
}

// clearLag sets the lag to zero. A process that does not run a joiner measures none.
func (m meters) clearLag() {
	for _, lag := range m.lag {
		lag.Set(0)
	}
}
