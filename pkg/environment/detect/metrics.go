// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// Values of the label for what was done to a record.
const (
	begun      = "begun"
	changed    = "changed"
	superseded = "superseded"
)

// All labels have few values, because the number of environments and namespaces is unbounded.
var (
	eventsReceived = metrics.NewCounterVec("dependency_events_received_total",
		"Watch events of objects that environments have or may get copies of, by resource, such as configmaps.", "resource")
	eventsMapped  = metrics.NewCounter("dependency_events_mapped_total", "Watch events that are recorded for an environment.")
	eventsIgnored = metrics.NewCounterVec("dependency_events_ignored_total",
		"Watch events that are not recorded, by reason: not_copied, unchanged or attached.", "reason")
	recordsWritten = metrics.NewCounterVec("dependency_records_total",
		"SyncStatuses of dependencies written, by what was done: begun, changed or superseded.", "what")
	failures = metrics.NewCounter("dependency_failures_total",
		"Failures to record changes of dependencies of environments. They are retried.")
	recordSeconds = metrics.NewHistogram("dependency_record_duration_seconds",
		"Time from the first event of a batch, or the start of a watch, until a new SyncStatus is written. It includes the batch window.",
		// Most buckets are around the default window of 30 seconds.
		[]float64{1, 2, 5, 10, 20, 30, 30.5, 31, 32, 35, 40, 60, 120, 300, 900, 3600})

	// intakeMetrics are the metrics of changes that wait to be recorded.
	intakeMetrics = pending.NewMetrics("dependency", "environments")
)

func init() {
	legacyregistry.MustRegister(eventsReceived, eventsMapped, eventsIgnored, recordsWritten, failures, recordSeconds)
	// What counts from 0 has its first time counted as an increase.
	for _, reason := range []class{notCopied, unchanged, attached} {
		eventsIgnored.WithLabelValues(string(reason))
	}
	for _, what := range []string{begun, changed, superseded} {
		recordsWritten.WithLabelValues(what)
	}
}
