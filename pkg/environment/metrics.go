// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// The labels of the metrics have few values: there is no bound on how many environments there are. What is wrong with one of them
// is told by its conditions, its records and Events.
var (
	syncs = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "slipstream", Name: "environment_syncs_total", StabilityLevel: metrics.ALPHA,
		Help: "Runs of environments' syncs that have come to an end, by the type of their SyncStatus and the state that it has come to.",
	}, []string{"type", "state"})
	syncSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: "slipstream", Name: "environment_sync_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long runs of environments' syncs take, from the first reading to the last record.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 900},
	})
	unrecorded = newCounter("environment_syncs_unrecorded_total",
		"Runs of environments' syncs of which it could not be recorded what came of them. They are done again.")
	indexDifferences = newCounter("environment_index_differences_total",
		"Copies of which the index of dependencies said something else than the EnvironmentDependencies when the two were compared.")
	environmentsGauge = newGaugeVec("environments", "Environments, by the status of their condition Ready: True, False or Unknown.", "ready")
	awaitingGauge     = newGaugeVec("environment_records_awaiting",
		"SyncStatuses of environments that are there which need someone, by state: ManualIntervention or Conflicted.", "state")
	promptsGauge = newGaugeVec("environment_prompts",
		"Environments that have something to take which nobody has taken or dismissed, by what it is about: catalog or dependencies.", "about")
	oldestPrompt = newGaugeVec("environment_oldest_prompt_timestamp_seconds",
		"Since when the first of them has, in seconds since 1970. 0 when there is none.", "about")
	waitingGauge = newGauge("environment_syncs_waiting", "Runs of environments' syncs that wait in line, because of maxSyncsPerMinute or how many go on.")
	activeGauge  = newGauge("environment_syncs_active", "Runs of environments' syncs that go on.")
)

func newCounter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func newGauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func newGaugeVec(name, help, label string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(
		&metrics.GaugeOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA}, []string{label})
}

func init() {
	legacyregistry.MustRegister(syncs, syncSeconds, unrecorded, indexDifferences, environmentsGauge, awaitingGauge, promptsGauge, oldestPrompt, waitingGauge, activeGauge)
	// What counts from 0 has its first time counted as an increase.
	for _, of := range []v1alpha1.SyncType{v1alpha1.SyncTypeEnvironment, v1alpha1.SyncTypeDependency} {
		for _, state := range []v1alpha1.SyncState{v1alpha1.SyncStateCompleted, v1alpha1.SyncStateFailed} {
			syncs.WithLabelValues(string(of), string(state))
		}
	}
	syncs.WithLabelValues(string(v1alpha1.SyncTypeEnvironment), string(v1alpha1.SyncStateConflicted))
}
