// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metric"
)

// The labels of the metrics have few values: there is no bound on how many environments there are. What is wrong with one of them
// is told by its conditions, its records and Events.
var (
	syncs = metric.NewCounterVec("environment_syncs_total",
		"Runs of environments' syncs that have come to an end, by the type of their SyncStatus and the state that it has come to.",
		"type", "state")
	syncSeconds = metric.NewHistogram("environment_sync_duration_seconds",
		"How long runs of environments' syncs take, from the first reading to the last record.",
		[]float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 900})
	unrecorded = metric.NewCounter("environment_syncs_unrecorded_total",
		"Runs of environments' syncs of which it could not be recorded what came of them. They are done again.")
	indexDifferences = metric.NewCounter("environment_index_differences_total",
		"Copies of which the index of dependencies said something else than the EnvironmentDependencies when the two were compared.")
	environmentsGauge = metric.NewGaugeVec("environments", "Environments, by the status of their condition Ready: True, False or Unknown.", "ready")
	awaitingGauge     = metric.NewGaugeVec("environment_records_awaiting",
		"SyncStatuses of environments that are there which need someone, by state: ManualIntervention or Conflicted.", "state")
	promptsGauge = metric.NewGaugeVec("environment_prompts",
		"Environments that have something to take which nobody has taken or dismissed, by what it is about: catalog or dependencies.",
		"about")
	oldestPrompt = metric.NewGaugeVec("environment_oldest_prompt_timestamp_seconds",
		"Since when the first of them has, in seconds since 1970. 0 when there is none.", "about")
	waitingGauge = metric.NewGauge("environment_syncs_waiting", "Runs of environments' syncs that wait in line, because of maxSyncsPerMinute or how many go on.")
	activeGauge  = metric.NewGauge("environment_syncs_active", "Runs of environments' syncs that go on.")
)

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
