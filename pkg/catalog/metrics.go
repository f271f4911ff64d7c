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

// The labels of the metrics have few values: there is no bound on how many catalogs and namespaces there are. What is wrong
// with one of them is told by its conditions, its records and Events.
var (
	eventsReceived = metrics.NewCounterVec("catalog_events_received_total", "Events of watches of the sources of catalogs, by the type of the objects, such as deployments.",
		"resource")
	eventsMapped  = metrics.NewCounter("catalog_events_mapped_total", "Those of the events that are to be recorded for a catalog.")
	eventsIgnored = metrics.NewCounterVec("catalog_events_ignored_total",
		"Those of the events that are not to be recorded, by reason: not_followed or unchanged.", "reason")
	recordsWritten = metrics.NewCounterVec("catalog_records_total", "States that SyncStatuses of catalogs have come to.", "state")
	failures       = metrics.NewCounterVec("catalog_failures_total",
		"Times that a catalog could not be brought up to date, by reason. What is Transient is begun again without a record.", "reason")
	recordSeconds = metrics.NewHistogram("catalog_record_duration_seconds",
		"Time from the first event of a batch, or the beginning of a watch, until its SyncStatus is written: the batch window and what comes after it.",
		// Most around the default window of 30 seconds.
		[]float64{1, 2, 5, 10, 20, 30, 30.5, 31, 32, 35, 40, 60, 120, 300, 900, 3600})
	editSeconds = metrics.NewHistogram("catalog_edit_duration_seconds",
		"Time from when a user has changed the spec of a catalog until there is the revision that this makes. Both times are in the objects, so that restarts do not matter.",
		[]float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600})

	catalogsGauge    = metrics.NewGaugeVec("catalogs", "Catalogs, by the status of their condition Ready: True, False or Unknown.", "ready")
	missingGauge     = metrics.NewGauge("catalog_workloads_missing", "Workloads that catalogs offer and their sources do not have any more.")
	awaitingGauge    = metrics.NewGauge("catalog_records_awaiting", "SyncStatuses that need someone, of catalogs that are there: their state is ManualIntervention.")
	unreachableGauge = metrics.NewGauge("catalog_sources_unreachable", "Namespaces that catalogs follow and that do not exist or cannot be read.")
	sourcesGauge     = metrics.NewGauge("catalog_sources", "Namespaces that catalogs follow.")
)

// intakeMetrics are those of what waits to be recorded.
var intakeMetrics = pending.NewMetrics("catalog", "catalogs")

// reasonTransient is that of a failure that passes by itself.
const reasonTransient = "Transient"

func init() {
	legacyregistry.MustRegister(eventsReceived, eventsMapped, eventsIgnored, recordsWritten, failures, recordSeconds, editSeconds,
		catalogsGauge, missingGauge, awaitingGauge, unreachableGauge, sourcesGauge)
	// What counts from 0 has its first time counted as an increase.
	for _, meaning := range []meaning{notFollowed, unchanged} {
		eventsIgnored.WithLabelValues(string(meaning))
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

// countFailure counts what keeps catalogs from being brought up to date, of several that for each.
func countFailure(err error) {
	if several := utilerrors.Aggregate(nil); errors.As(err, &several) {
		for _, one := range several.Errors() {
			countFailure(one)
		}
		return
	}
	reason := reasonTransient
	if why := problemIn(err); why != nil {
		reason = why.reason
	}
	failures.WithLabelValues(reason).Inc()
}

// measureEdit measures how long it took until a user's edit had made a revision. Of an edit whose user is not known, it is not known
// either when that was.
func measureEdit(record *v1alpha1.SyncStatus, now time.Time) {
	if record.Status.Actor != "" && syncstatus.IsEdit(record.Spec.Batch) {
		editSeconds.Observe(max(now.Sub(record.Status.DetectedAt.Time), 0).Seconds())
	}
}
