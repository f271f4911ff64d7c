// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	discoveryErrors = metrics.NewCounter(&metrics.CounterOpts{
		Namespace:      "slipstream",
		Name:           "discovery_errors_total",
		Help:           "Discovery of the source cluster's resource types that failed, wholly or for some API groups.",
		StabilityLevel: metrics.ALPHA,
	})
	eventsReceived = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace:      "slipstream",
		Name:           "watch_events_received_total",
		Help:           "Changes that watches of the source cluster brought, by whose watches they are.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})
	running = newWatchCollector()
)

func init() {
	legacyregistry.MustRegister(discoveryErrors, eventsReceived)
	legacyregistry.CustomMustRegister(running)
}
