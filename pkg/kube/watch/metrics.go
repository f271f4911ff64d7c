// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var (
	discoveryErrors = metrics.NewCounter("discovery_errors_total",
		"Discovery of the source cluster's resource types that failed, completely or for some API groups.")
	eventsReceived = metrics.NewCounterVec("watch_events_received_total",
		"Changes received by watches of the source cluster, by controller.", "controller")
	running = newWatchCollector()
)

func init() {
	legacyregistry.MustRegister(discoveryErrors, eventsReceived)
	legacyregistry.CustomMustRegister(running)
}
