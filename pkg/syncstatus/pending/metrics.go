// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

// Metrics are those of the intakes for one purpose, of which one is open at a time.
type Metrics struct {
	objects, capacity, blocked *metrics.Gauge
	resyncs                    *metrics.CounterVec
	deduplicated, closed       *metrics.Counter
}

// NewMetrics registers metrics whose names begin with the name of a purpose, such as catalog. The sources are those of what
// their texts say, such as catalogs.
func NewMetrics(purpose, of string) *Metrics {
	m := newMetrics(purpose, of)
	legacyregistry.MustRegister(m.objects, m.capacity, m.resyncs, m.blocked, m.deduplicated, m.closed)
	for _, reason := range []ResyncReason{Missed, Overflow, Relisted, Requested, Unreadable} {
		m.resyncs.WithLabelValues(string(reason)) // So that the first one is an increase.
	}
	return m
}

// newMetrics returns metrics that nobody sees until they are registered.
func newMetrics(purpose, of string) *Metrics {
	prefix := purpose + "_intake_"
	return &Metrics{
		objects: slipmetrics.NewGauge(prefix+"objects", "Changed objects of the sources of "+of+" that are not recorded yet."),
		capacity: slipmetrics.NewGauge(prefix+"capacity",
			"How many changed objects can wait to be recorded. Beyond it, whole namespaces are compared with their "+of+" instead."),
		blocked: slipmetrics.NewGauge(prefix+"blocked", "1 while changed objects cannot be kept in the store until they are recorded, 0 otherwise."),
		resyncs: slipmetrics.NewCounterVec(prefix+"resyncs_total", "Times that a whole namespace was to be compared with its "+of+
			", by reason: missed, overflow, relisted, requested or unreadable.", "reason"),
		deduplicated: slipmetrics.NewCounter(prefix+"events_deduplicated_total",
			"Events of objects that were waiting to be recorded already, by themselves or with their whole namespace."),
		closed: slipmetrics.NewCounter(prefix+"batches_closed_total",
			"Batches of changes in source namespaces that were closed to be recorded."),
	}
}
