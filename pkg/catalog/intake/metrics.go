// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	objectsGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: "catalog_intake_objects", StabilityLevel: metrics.ALPHA,
		Help: "Changed objects of the sources of catalogs that are not recorded yet.",
	})
	capacityGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: "catalog_intake_capacity", StabilityLevel: metrics.ALPHA,
		Help: "How many changed objects can wait to be recorded. Beyond it, whole namespaces are compared with their catalogs instead.",
	})
	resyncs = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "catalog_intake_resyncs_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that a whole namespace was to be compared with its catalogs, by reason: overflow, relisted, requested or unreadable.",
	}, []string{"reason"})
	blockedGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: "catalog_intake_blocked", StabilityLevel: metrics.ALPHA,
		Help: "1 while changed objects cannot be kept in the store until they are recorded, 0 otherwise.",
	})
	deduplicated = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "catalog_intake_events_deduplicated_total", StabilityLevel: metrics.ALPHA,
		Help: "Events of objects that were waiting to be recorded already, by themselves or with their whole namespace.",
	})
	batchesClosed = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "catalog_intake_batches_closed_total", StabilityLevel: metrics.ALPHA,
		Help: "Batches of changes in source namespaces that were closed to be recorded.",
	})
)

func init() {
	legacyregistry.MustRegister(objectsGauge, capacityGauge, resyncs, blockedGauge, deduplicated, batchesClosed)
	for _, reason := range []ResyncReason{Missed, Overflow, Relisted, Requested, Unreadable} {
		resyncs.WithLabelValues(string(reason)) // So that the first one is an increase.
	}
}
