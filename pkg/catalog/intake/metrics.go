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
)

func init() { legacyregistry.MustRegister(objectsGauge, capacityGauge, resyncs) }
