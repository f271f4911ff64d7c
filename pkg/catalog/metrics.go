// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/intake"
)

// The labels of the metrics have few values: there is no bound on how many catalogs and namespaces there are. What is wrong
// with one of them is told by its conditions, its records and Events.
var (
	eventsReceived = newCounter("catalog_events_received_total", "Events of watches of the sources of catalogs.")
	eventsMapped   = newCounter("catalog_events_mapped_total", "Those of the events that are to be recorded for a catalog.")
	eventsIgnored  = newCounterVec("catalog_events_ignored_total",
		"Those of the events that are not to be recorded, by reason: not_followed or unchanged.", "reason")
	recordsWritten = newCounterVec("catalog_records_total", "States that SyncStatuses of catalogs have come to.", "state")
	failures       = newCounterVec("catalog_failures_total",
		"Times that a catalog could not be brought up to date, by reason. What is Transient is begun again without a record.", "reason")
	recordSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: "slipstream", Name: "catalog_record_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time from the first event of a batch, or the beginning of a watch, until its SyncStatus is written: the batch window and what comes after it.",
		// Most around the default window of 30 seconds.
		Buckets: []float64{1, 2, 5, 10, 20, 30, 30.5, 31, 32, 35, 40, 60, 120, 300, 900, 3600},
	})

	catalogsGauge    = newGaugeVec("catalogs", "Catalogs, by the status of their condition Ready: True, False or Unknown.", "ready")
	missingGauge     = newGauge("catalog_workloads_missing", "Workloads that catalogs offer and their sources do not have any more.")
	awaitingGauge    = newGauge("catalog_records_awaiting", "SyncStatuses that need someone, of catalogs that are there: their state is ManualIntervention.")
	unreachableGauge = newGauge("catalog_sources_unreachable", "Namespaces that catalogs follow and that do not exist or cannot be read.")
	sourcesGauge     = newGauge("catalog_sources", "Namespaces that catalogs follow.")
)

// intakeMetrics are those of what waits to be recorded.
var intakeMetrics = intake.NewMetrics("catalog", "catalogs")

// reasonTransient is that of a failure that passes by itself.
const reasonTransient = "Transient"

func newCounter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func newCounterVec(name, help, label string) *metrics.CounterVec {
	return metrics.NewCounterVec(
		&metrics.CounterOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA}, []string{label})
}

func newGauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func newGaugeVec(name, help, label string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(
		&metrics.GaugeOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA}, []string{label})
}

func init() {
	legacyregistry.MustRegister(eventsReceived, eventsMapped, eventsIgnored, recordsWritten, failures, recordSeconds,
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
