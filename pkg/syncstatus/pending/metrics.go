// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

// Metrics are the metrics of the intake for one purpose.
type Metrics struct {
	objects, capacity, blocked *metrics.Gauge
	resyncs                    *metrics.CounterVec
	deduplicated, closed       *metrics.Counter
}

// NewMetrics registers metrics with the name of a purpose, such as catalog, as the prefix of their names. of is used in their help texts,
// such as catalogs.
func NewMetrics(purpose, of string) *Metrics {
	m := newMetrics(purpose, of)
	legacyregistry.MustRegister(m.objects, m.capacity, m.resyncs, m.blocked, m.deduplicated, m.closed)
	for _, reason := range []ResyncReason{Missed, Overflow, Relisted, Requested, Unreadable} {
		m.resyncs.WithLabelValues(string(reason)) // A counter that starts at 0 shows its first increment as an increase.
	}
	return m
}

// newMetrics returns metrics that are not registered.
func newMetrics(purpose, of string) *Metrics {
	prefix := purpose + "_intake_"
	return &Metrics{
		objects: slipmetrics.NewGauge(prefix+"objects", "Changed objects of the sources of "+of+" that are not recorded yet."),
		capacity: slipmetrics.NewGauge(prefix+"capacity",
			"Maximum number of changed objects that wait to be recorded. If it is exceeded, whole namespaces are compared with their "+
				of+" instead."),
		blocked: slipmetrics.NewGauge(prefix+"blocked", "1 while changed objects that wait to be recorded cannot be stored, 0 otherwise."),
		resyncs: slipmetrics.NewCounterVec(prefix+"resyncs_total", "Requests to compare a whole namespace with its "+of+
			", by reason: missed, overflow, relisted, requested or unreadable.", "reason"),
		deduplicated: slipmetrics.NewCounter(prefix+"events_deduplicated_total",
			"Events of objects that already waited to be recorded, individually or with their whole namespace."),
		closed: slipmetrics.NewCounter(prefix+"batches_closed_total",
			"Batches of changes in source namespaces that were closed to be recorded."),
	}
}
