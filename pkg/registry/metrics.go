// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"slices"
	"time"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics"
)

// What is dismissed and decided about, as metrics call it: what an environment prompts for, and records that nothing prompts for.
const (
	aboutCatalog           = "catalog"
	aboutDependencies      = "dependencies"
	aboutCatalogRecord     = "catalog_record"
	aboutEnvironmentRecord = "environment_record"
	aboutDependencyRecord  = "dependency_record"
)

// What users decide about a prompt, as metrics call it.
const (
	decisionTaken     = "taken"
	decisionDismissed = "dismissed"
)

var (
	dismissals = metrics.NewCounterVec("dismissals_total",
		"Times that a user has dismissed something, by what it is about: what an environment prompts for (catalog or dependencies), or a SyncStatus "+
			"that no environment prompts for (catalog_record, dependency_record or environment_record).", "about")
	decisionSeconds = metrics.NewHistogramVec("environment_decision_duration_seconds",
		"Time from when an environment began to prompt for something until a user asked for it or dismissed it, by what it is about (catalog or "+
			"dependencies) and the decision (taken or dismissed). When the prompt began is in the objects, so that restarts do not matter.",
		[]float64{60, 300, 900, 3600, 4 * 3600, 8 * 3600, 24 * 3600, 2 * 24 * 3600, 4 * 24 * 3600, 7 * 24 * 3600, 14 * 24 * 3600, 30 * 24 * 3600},
		"about", "decision")
)

func init() {
	legacyregistry.MustRegister(dismissals, decisionSeconds)
	// What counts from 0 has its first time counted as an increase.
	for _, about := range []string{aboutCatalog, aboutDependencies, aboutCatalogRecord, aboutDependencyRecord, aboutEnvironmentRecord} {
		dismissals.WithLabelValues(about)
	}
	for _, about := range []string{aboutCatalog, aboutDependencies} {
		for _, decision := range []string{decisionTaken, decisionDismissed} {
			decisionSeconds.WithLabelValues(about, decision)
		}
	}
}

// countRecordDismissal counts that a record was dismissed for which no environment prompts any more.
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

// since says since when an environment has prompted for what nobody has decided about yet, by the times of the catalog's revisions and
// of the record about what workloads refer to. What cannot be read, or has no time any more, is left out.
func (p *prompts) since(ctx context.Context, environment *configbutler.Environment) map[string]time.Time {
	since := map[string]time.Time{}
	if catalogOffer(environment) != "" && environment.Spec.PinnedRevision == nil {
		ref := environment.Spec.CatalogRef
		namespace := cmp.Or(ref.Namespace, environment.Namespace)
		catalog, err := read[*configbutler.AppCatalog](genericapirequest.WithNamespace(ctx, namespace), p.catalogs, ref.Name)
		if err == nil {
			if began := offeredSince(environment, catalog); !began.IsZero() {
				since[aboutCatalog] = began
			}
		}
	}
	if name := environment.Status.LatestDependencySync; name != "" {
		if record, err := recordCalled(ctx, p.records, name); err == nil {
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

// offeredSince is when the catalog had the first revision that the environment does not have and nobody has dismissed; the zero time
// if that is not known any more.
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

// takenBy is what a request takes of what an environment prompts for. One of some workloads leaves the prompts.
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

// measureDecision measures what was decided at a time about what an environment has prompted for.
func measureDecision(since map[string]time.Time, decided []string, decision string, at time.Time) {
	for about, began := range since {
		if slices.Contains(decided, about) {
			decisionSeconds.WithLabelValues(about, decision).Observe(max(at.Sub(began), 0).Seconds())
		}
	}
}
