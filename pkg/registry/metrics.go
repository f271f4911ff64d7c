// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"slices"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics"
)

// Values of the label "about": prompts of environments, and records without a prompt.
const (
	aboutCatalog           = "catalog"
	aboutDependencies      = "dependencies"
	aboutCatalogRecord     = "catalog_record"
	aboutEnvironmentRecord = "environment_record"
	aboutDependencyRecord  = "dependency_record"
)

// Values of the label "decision".
const (
	decisionTaken     = "taken"
	decisionDismissed = "dismissed"
)

var (
	dismissals = metrics.NewCounterVec("dismissals_total",
		"Dismissals by users, by what they are about: the prompt of an environment (catalog or dependencies), or a SyncStatus without a prompt "+
			"(catalog_record, dependency_record or environment_record).", "about")
	decisionSeconds = metrics.NewHistogramVec("environment_decision_duration_seconds",
		"Time from the start of an environment's prompt until a user accepts or dismisses it, by what it is about (catalog or dependencies) and "+
			"the decision (taken or dismissed). The start is stored in the objects, so restarts do not affect it.",
		[]float64{60, 300, 900, 3600, 4 * 3600, 8 * 3600, 24 * 3600, 2 * 24 * 3600, 4 * 24 * 3600, 7 * 24 * 3600, 14 * 24 * 3600, 30 * 24 * 3600},
		"about", "decision")
)

func init() {
	legacyregistry.MustRegister(dismissals, decisionSeconds)
	// Initialize counters to 0, so that the first increment is visible as an increase.
	for _, about := range []string{aboutCatalog, aboutDependencies, aboutCatalogRecord, aboutDependencyRecord, aboutEnvironmentRecord} {
		dismissals.WithLabelValues(about)
	}
	for _, about := range []string{aboutCatalog, aboutDependencies} {
		for _, decision := range []string{decisionTaken, decisionDismissed} {
			decisionSeconds.WithLabelValues(about, decision)
		}
	}
}

// countRecordDismissal counts the dismissal of a record for which no environment prompts.
func countRecordDismissal(of v1alpha1.SyncType) {
	about := aboutEnvironmentRecord
	switch of {
	case v1alpha1.SyncTypeCatalog:
		about = aboutCatalogRecord
	case v1alpha1.SyncTypeDependency:
		about = aboutDependencyRecord
	}
	dismissals.WithLabelValues(about).Inc()
}

// since returns the start times of an environment's undecided prompts, from the catalog's revisions and the open
// dependency record. It omits prompts whose start is no longer known.
func (p *prompts) since(ctx context.Context, environment *configbutler.Environment) map[string]time.Time {
	since := map[string]time.Time{}
	if catalogOffer(environment) != "" && environment.Spec.PinnedRevision == nil {
		name := v1alpha1.ObjectReference(environment.Spec.CatalogRef).NamespacedName(environment.Namespace)
		catalog, err := read[*configbutler.AppCatalog](genericapirequest.WithNamespace(ctx, name.Namespace), p.catalogs, name.Name)
		if err == nil {
			if began := offeredSince(environment, catalog); !began.IsZero() {
				since[aboutCatalog] = began
			}
		}
	}
	if name := environment.Status.LatestDependencySync; name != "" {
		if record, err := getRecord(ctx, p.records, name); err == nil {
			since[aboutDependencies] = record.Status.DetectedAt.Time
		}
	}
	for i := range environment.Status.PendingRequests {
		for _, about := range takenBy(&environment.Status.PendingRequests[i]) {
			delete(since, about)
		}
	}
	return since
}

// offeredSince returns the time of the first revision that the environment neither has nor has dismissed, or the zero
// time if it is no longer known.
func offeredSince(environment *configbutler.Environment, catalog *configbutler.AppCatalog) (first time.Time) {
	revisions := catalog.Status.History
	had := environment.Status.AppliedRevision
	for _, revision := range revisions {
		if dismissed := environment.Status.DismissedCatalogSync; dismissed != "" && revision.SyncStatus == dismissed {
			had = max(had, revision.Revision)
		}
	}
	for _, revision := range revisions {
		if revision.Revision > had && (first.IsZero() || revision.Time.Time.Before(first)) {
			first = revision.Time.Time
		}
	}
	return first
}

// takenBy returns the prompts that a request resolves. A request for some workloads resolves none.
func takenBy(request *configbutler.PendingEnvironmentRequest) []string {
	if request.Type != configbutler.EnvironmentRequestSync || request.Sync == nil || len(request.Sync.Workloads) > 0 {
		return nil
	}
	switch request.Sync.Action {
	case configbutler.SyncActionCatalog:
		return []string{aboutCatalog}
	case configbutler.SyncActionCluster:
		return []string{aboutDependencies}
	}
	return []string{aboutCatalog, aboutDependencies}
}

// measureDecision observes the time between the start of prompts and a decision about them.
func measureDecision(since map[string]time.Time, decided []string, decision string, at time.Time) {
	for about, began := range since {
		if slices.Contains(decided, about) {
			decisionSeconds.WithLabelValues(about, decision).Observe(max(at.Sub(began), 0).Seconds())
		}
	}
}
