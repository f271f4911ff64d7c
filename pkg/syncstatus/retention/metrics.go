// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

// The results of sweeps.
const (
	success = "success"
	failure = "failure"
)

var (
	recordsGauge = metrics.NewGauge("syncstatuses",
		"SyncStatuses that the last sweep left. 0 where no sweeps are made.")
	expiredTotal = metrics.NewCounter("syncstatuses_expired_total",
		"SyncStatuses that were removed because their time was over.")
	archivedTotal = metrics.NewCounter("syncstatuses_archived_total",
		"SyncStatuses that were written to the archive.")
	sweeps = metrics.NewCounterVec("retention_sweeps_total",
		"Looks through all SyncStatuses for those whose time is over, by result: success or failure.", "result")
)

func init() {
	legacyregistry.MustRegister(recordsGauge, expiredTotal, archivedTotal, sweeps)
	for _, result := range []string{success, failure} {
		sweeps.WithLabelValues(result) // So that the first one is an increase.
	}
}
