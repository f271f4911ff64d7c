// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// No metric has a label for catalogs or namespaces, because their number is not limited. Conditions, records and Events report on one
// catalog.
var (
	eventsReceived = metrics.NewCounterVec("catalog_events_received_total",
		"Events of watches of source namespaces of catalogs, by resource, such as deployments.", "resource")
	eventsMapped  = metrics.NewCounter("catalog_events_mapped_total", "Events of source namespaces that are recorded for a catalog.")
	eventsIgnored = metrics.NewCounterVec("catalog_events_ignored_total",
		"Events of source namespaces that are not recorded, by reason: not_followed or unchanged.", "reason")
	recordsWritten = metrics.NewCounterVec("catalog_records_total",
		"SyncStatuses of catalogs that have changed to a state, by state.", "state")
	failures = metrics.NewCounterVec("catalog_failures_total",
		"Failed updates of catalogs, by reason. An update with the reason Transient is repeated without a record.", "reason")
	recordSeconds = metrics.NewHistogram("catalog_record_duration_seconds",
		"Time from the first event of a batch, or the start of a watch, until its SyncStatus is written. It includes the batch window.",
		// Most buckets are around the default window of 30 seconds.
		[]float64{1, 2, 5, 10, 20, 30, 30.5, 31, 32, 35, 40, 60, 120, 300, 900, 3600})
	editSeconds = metrics.NewHistogram("catalog_edit_duration_seconds",
		"Time from a user's edit of the spec of a catalog until its revision is written. Both times are stored, so restarts do not affect it.",
		[]float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600})

	catalogsGauge = metrics.NewGaugeVec("catalogs", "Catalogs, by the status of their condition Ready: True, False or Unknown.", "ready")
	missingGauge  = metrics.NewGauge("catalog_workloads_missing", "Workloads that catalogs offer and that are no longer in their sources.")
	awaitingGauge = metrics.NewGauge("catalog_records_awaiting",
		"SyncStatuses of existing catalogs that are in the state ManualIntervention.")
	unreachableGauge = metrics.NewGauge("catalog_sources_unreachable", "Source namespaces of catalogs that do not exist or cannot be read.")
	sourcesGauge     = metrics.NewGauge("catalog_sources", "Source namespaces of catalogs.")
)

// intakeMetrics are the metrics of the changes that wait to be recorded.
var intakeMetrics = pending.NewMetrics("catalog", "catalogs")

// reasonTransient is the reason of a failure that is not recorded, because the update is repeated.
const reasonTransient = "Transient"

func init() {
	legacyregistry.MustRegister(eventsReceived, eventsMapped, eventsIgnored, recordsWritten, failures, recordSeconds, editSeconds,
		catalogsGauge, missingGauge, awaitingGauge, unreachableGauge, sourcesGauge)
	// A counter that starts at 0 shows its first increment as an increase.
	for _, reason := range []relevance{notFollowed, unchanged} {
		eventsIgnored.WithLabelValues(string(reason))
	}
	for _, state := range []v1alpha1.SyncState{
		v1alpha1.SyncStateAutoApplied, v1alpha1.SyncStateApplied, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying,
		v1alpha1.SyncStateManualIntervention,
	} {
		recordsWritten.WithLabelValues(string(state))
	}
	for _, reason := range []string{reasonTransient, v1alpha1.ReasonPatchFailed, v1alpha1.ReasonRecordRefused} {
		failures.WithLabelValues(reason)
	}
}

// countFailure counts a failure by its reason. It counts each error of an aggregate.
func countFailure(err error) {
	if several := utilerrors.Aggregate(nil); errors.As(err, &several) {
		for _, one := range several.Errors() {
			countFailure(one)
		}
		return
	}
	reason := reasonTransient
	if why := asStalling(err); why != nil {
		reason = why.reason
	}
	failures.WithLabelValues(reason).Inc()
}

// measureEdit observes the time from an edit to its revision. If the user of an edit is not known, its time is not known either.
func measureEdit(record *v1alpha1.SyncStatus, now time.Time) {
	if record.Status.Actor != "" && syncstatus.IsEdit(record.Spec.Batch) {
		editSeconds.Observe(max(now.Sub(record.Status.DetectedAt.Time), 0).Seconds())
	}
}
