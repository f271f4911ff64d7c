// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

// Results of sweeps, as values of a metric label.
const (
	success = "success"
	failure = "failure"
)

var (
	recordsGauge = metrics.NewGauge("syncstatuses",
		"SyncStatuses that are left after the last sweep. 0 on replicas that do not sweep.")
	expiredTotal = metrics.NewCounter("syncstatuses_expired_total",
		"Expired SyncStatuses that were deleted.")
	archivedTotal = metrics.NewCounter("syncstatuses_archived_total",
		"SyncStatuses that were written to the archive.")
	sweeps = metrics.NewCounterVec("retention_sweeps_total",
		"Sweeps of expired SyncStatuses, by result: success or failure.", "result")
)

func init() {
	legacyregistry.MustRegister(recordsGauge, expiredTotal, archivedTotal, sweeps)
	for _, result := range []string{success, failure} {
		sweeps.WithLabelValues(result) // A counter that starts at 0 shows its first increment as an increase.
	}
}
