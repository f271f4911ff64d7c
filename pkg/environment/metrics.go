// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics"
)

// The labels of the metrics have few values, because the number of environments is not bounded. Conditions, records and Events describe
// single environments.
var (
	syncs = metrics.NewCounterVec("environment_syncs_total",
		"SyncStatuses of completed syncs of environments, by type, action, trigger (automatic, or requested by a user) and final state.",
		"type", "action", "trigger", "state")
	syncSeconds = metrics.NewHistogram("environment_sync_duration_seconds",
		"Duration of syncs of environments, from the first read to the last record.",
		[]float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 900})
	sourceSeconds = metrics.NewHistogramVec("environment_source_change_duration_seconds",
		"Time from the event of a source change until an environment has it, by what changed (a revision of the catalog, or dependencies) and "+
			"trigger (automatic, or requested by a user). Each revision counts once per environment. Both times are in SyncStatuses, so restarts "+
			"do not affect it.",
		// Some buckets are around the default window of 30 seconds.
		[]float64{5, 10, 20, 30, 35, 40, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}, "about", "trigger")
	unrecorded = metrics.NewCounter("environment_syncs_unrecorded_total",
		"Syncs of environments whose outcome could not be recorded. They are repeated.")
	indexDifferences = metrics.NewCounter("environment_index_differences_total",
		"Copies for which the index of dependencies differed from the EnvironmentDependencies when the two were compared.")
	indexCopies       = metrics.NewGauge("environment_index_copies", "Copies in the index of dependencies, of all environments.")
	environmentsGauge = metrics.NewGaugeVec("environments",
		"Environments, by the status of their condition Ready: True, False or Unknown.", "ready")
	awaitingGauge = metrics.NewGaugeVec("environment_records_awaiting",
		"SyncStatuses of existing environments that need a user, by state: ManualIntervention or Conflicted.", "state")
	promptsGauge = metrics.NewGaugeVec("environment_prompts",
		"Environments with a prompt that is neither taken nor dismissed, by what it is about: catalog or dependencies.",
		"about")
	oldestPrompt = metrics.NewGaugeVec("environment_oldest_prompt_timestamp_seconds",
		"Start of the oldest prompt, in seconds since 1970. 0 if there is none.", "about")
	waitingGauge = metrics.NewGauge("environment_syncs_waiting",
		"Queued syncs of environments, because of maxSyncsPerMinute or the number of running syncs.")
	activeGauge = metrics.NewGauge("environment_syncs_active", "Running syncs of environments.")
)

func init() {
	legacyregistry.MustRegister(syncs, syncSeconds, sourceSeconds, unrecorded, indexDifferences, indexCopies,
		environmentsGauge, awaitingGauge, promptsGauge, oldestPrompt, waitingGauge, activeGauge)
	// Counters start at 0, so that the first event is an increase.
	for _, trigger := range []string{triggerAutomatic, triggerRequested} {
		for _, action := range []v1alpha1.SyncAction{v1alpha1.SyncActionCatalog, v1alpha1.SyncActionAll, v1alpha1.SyncActionCluster} {
			of, states := v1alpha1.SyncTypeEnvironment, []v1alpha1.SyncState{
				v1alpha1.SyncStateCompleted, v1alpha1.SyncStateFailed, v1alpha1.SyncStateConflicted,
			}
			if action == v1alpha1.SyncActionCluster {
				of, states = v1alpha1.SyncTypeDependency, states[:2]
			}
			for _, state := range states {
				syncs.WithLabelValues(string(of), string(action), trigger, string(state))
			}
		}
		sourceSeconds.WithLabelValues(aboutCatalog, trigger)
		sourceSeconds.WithLabelValues(aboutDependencies, trigger)
	}
}

// What has changed, as metrics call it.
const (
	aboutCatalog      = "catalog"
	aboutDependencies = "dependencies"
)

// Why a run has begun, as metrics call it.
const (
	triggerAutomatic = "automatic"
	triggerRequested = "requested"
)

// triggerOf returns the label value for why a sync was started.
func triggerOf(automatic bool) string {
	if automatic {
		return triggerAutomatic
	}
	return triggerRequested
}

// measure records the outcome of a job.
func measure(begun syncer.Job, outcome syncer.Outcome, took time.Duration) {
	for i, record := range outcome.Records {
		// A record that has ended no longer contains who requested its last attempt.
		trigger := triggerOf(isAutomatic(begun.Records[i]))
		syncs.WithLabelValues(string(record.Spec.Type), string(actionOf(record)), trigger, string(record.Status.State)).Inc()
	}
	if outcome.Result.Plan != nil {
		syncSeconds.Observe(took.Seconds())
	}
}

// measureSource measures how long source changes took to reach the environment, for completed syncs of all workloads. before is the
// previous status of the environment.
func (r *reconciliation) measureSource(ctx context.Context, before *v1alpha1.EnvironmentStatus, ended []*v1alpha1.SyncStatus) {
	had := newestApplied(before)
	for _, record := range ended {
		switch {
		case record.Status.Preview:
		case record.Spec.Type == v1alpha1.SyncTypeDependency && isSourceChange(record):
			observeSource(aboutDependencies, record, record.Status.DetectedAt.Time)
		case record.Spec.Type == v1alpha1.SyncTypeEnvironment && had > 0: // The first sync brings no change.
			r.measureRevisions(ctx, record, had)
		}
		had = max(had, record.Status.Revision)
	}
}

// measureRevisions measures the catalog revisions that the environment has for the first time, as far as their records exist.
func (r *reconciliation) measureRevisions(ctx context.Context, record *v1alpha1.SyncStatus, had int64) {
	if r.state.catalog == nil {
		return
	}
	status := &r.state.catalog.Status
	revisions := append(slices.Clone(status.History), v1alpha1.CatalogRevision{Revision: status.Revision, SyncStatus: status.LatestSync})
	syncs := map[int64]string{}
	for _, of := range revisions {
		if of.Revision > had && of.Revision <= record.Status.Revision {
			syncs[of.Revision] = of.SyncStatus
		}
	}
	for _, name := range syncs {
		change, err := r.environments.api.SyncStatuses(r.state.catalog.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && change.Status.AutoTriggered {
			observeSource(aboutCatalog, record, change.Status.DetectedAt.Time)
		}
	}
}

func observeSource(about string, record *v1alpha1.SyncStatus, since time.Time) {
	if end := record.Status.ResolvedAt; end != nil {
		sourceSeconds.WithLabelValues(about, triggerOf(record.Status.AutoTriggered)).Observe(max(end.Sub(since), 0).Seconds())
	}
}

// newestApplied returns the newest revision that an environment ever had, 0 if it had none.
func newestApplied(status *v1alpha1.EnvironmentStatus) int64 {
	newest := status.AppliedRevision
	for _, entry := range status.History {
		newest = max(newest, entry.Revision)
	}
	return newest
}

// isSourceChange reports whether a Dependency record was created by a change of the source, and not by a user's request.
func isSourceChange(record *v1alpha1.SyncStatus) bool {
	return record.Status.Actor == "" || record.Annotations[annotationRequest] != ""
}
