// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The results of sweeps.
const (
	success = "success"
	failure = "failure"
)

var (
	recordsGauge = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "slipstream", Name: "syncstatuses", StabilityLevel: metrics.ALPHA,
		Help: "SyncStatuses that the last sweep left. 0 where no sweeps are made.",
	})
	expiredTotal = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "syncstatuses_expired_total", StabilityLevel: metrics.ALPHA,
		Help: "SyncStatuses that were removed because their time was over.",
	})
	archivedTotal = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "syncstatuses_archived_total", StabilityLevel: metrics.ALPHA,
		Help: "SyncStatuses that were written to the archive.",
	})
	sweeps = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "retention_sweeps_total", StabilityLevel: metrics.ALPHA,
		Help: "Looks through all SyncStatuses for those whose time is over, by result: success or failure.",
	}, []string{"result"})
)

func init() {
	legacyregistry.MustRegister(recordsGauge, expiredTotal, archivedTotal, sweeps)
	for _, result := range []string{success, failure} {
		sweeps.WithLabelValues(result) // So that the first one is an increase.
	}
}
