// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// defaultHistoryLimit is the historyLimit of an environment that sets none.
const defaultHistoryLimit = 10

// status updates the fields of an environment's status other than conditions.
type status struct {
	environment *v1alpha1.Environment
	// catalog is nil if it does not exist.
	catalog *v1alpha1.AppCatalog
	records records
	// offer is what a sync would change, nil while that is unknown.
	offer *offer
	// rediscovered are the ids of the rediscover requests that are done.
	rediscovered map[string]bool
}

// recordCompleted records completed syncs in the status, and returns their records.
func (s *status) recordCompleted() (ended []*v1alpha1.SyncStatus) {
	for _, name := range s.environment.Status.ActiveSyncs {
		if record := s.records.named(name); record != nil && record.Status.State == v1alpha1.SyncStateCompleted {
			ended = append(ended, record)
		}
	}
	slices.SortStableFunc(ended, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(a.Status.ResolvedAt.Compare(b.Status.ResolvedAt.Time), compareAges(a, b))
	})
	for _, record := range ended {
		if !record.Status.Preview {
			s.complete(record)
		}
	}
	return ended
}

// complete records a completed sync in the status. A sync of some workloads does not change the applied revision.
func (s *status) complete(record *v1alpha1.SyncStatus) {
	written := &s.environment.Status
	written.Dismissals = 0
	if requests(written.PendingRequests).isPartial(record) {
		return
	}
	written.DismissedDependencySync = ""
	written.LastDependencySyncedAt = record.Status.ResolvedAt.DeepCopy()
	if record.Spec.Type != v1alpha1.SyncTypeEnvironment {
		return
	}
	written.LastCatalogSyncedAt = record.Status.ResolvedAt.DeepCopy()
	written.AppliedRevision, written.AppliedCatalogSync = record.Status.Revision, syncOf(s.catalog, record.Status.Revision)
	written.DismissedCatalogSync, written.DismissedBy, written.DismissedAt = "", "", nil
	written.History = slices.DeleteFunc(slices.Clone(written.History), func(entry v1alpha1.CatalogRevision) bool {
		return entry.Revision == record.Status.Revision
	})
	written.History = slices.Insert(written.History, 0, v1alpha1.CatalogRevision{
		Revision: record.Status.Revision, Time: *record.Status.ResolvedAt, SyncStatus: record.Name,
	})
}

// describe sets the fields of the status other than conditions. active are the records of the sync that is about to start.
func (s *status) describe(active []*v1alpha1.SyncStatus) {
	written := &s.environment.Status
	written.ObservedGeneration = s.environment.Generation
	written.PendingEdits = nil
	written.History = written.History[:min(len(written.History), historyLimit(s.environment))]
	s.describeOffer()
	s.describeDependencies()
	written.ActiveSyncs, written.LastError = s.activeSyncs(active), nil
	if last := s.records.lastFailed(); last != nil {
		written.LastError = last.Status.Error
	}
	written.PendingRequests = slices.DeleteFunc(slices.Clone(written.PendingRequests), s.over())
	written.ExpiresAt = expiry(s.environment)
}

// activeSyncs returns the records that are in progress or about to start, whose results must be recorded later, and then as many waiting
// ones as fit.
func (s *status) activeSyncs(begin []*v1alpha1.SyncStatus) []string {
	var active, coming []string
	for _, record := range s.records {
		switch {
		case record.Status.State == v1alpha1.SyncStateInProgress, slices.Contains(begin, record):
			active = append(active, record.Name)
		case s.isActive(record):
			coming = append(coming, record.Name)
		}
	}
	all := slices.Concat(active, coming)
	return slices.Clip(all[:min(len(all), v1alpha1.MaxActiveSyncs)])
}

// describeOffer sets what the catalog offers, and what of it the environment lacks as far as known.
func (s *status) describeOffer() {
	written := &s.environment.Status
	isConflicted := s.records.in(v1alpha1.SyncStateConflicted) != nil
	if !isConflicted {
		written.Conflicts = nil
	}
	if newestRevision(s.catalog) == 0 {
		return
	}
	written.LatestCatalogSync, written.LatestRevision = s.catalog.Status.LatestSync, newestRevision(s.catalog)
	if s.offer == nil || s.offer.failure != nil {
		return
	}
	written.ChangedWorkloadCount = int32(len(s.offer.workloads))
	written.ChangedWorkloads = slices.Clip(s.offer.workloads[:min(len(s.offer.workloads), syncstatus.MaxListed)])
	written.NotCopied = slices.Clip(s.offer.notCopied[:min(len(s.offer.notCopied), v1alpha1.MaxNotCopied)])
	if isConflicted {
		written.Conflicts = slices.Clip(s.offer.conflicts[:min(len(s.offer.conflicts), v1alpha1.MaxConflicts)])
	}
}

// describeDependencies sets how many dependencies differ from the source, as far as known, and the record about them. A dismissed record
// is named until there is a newer one, or no difference.
func (s *status) describeDependencies() {
	written := &s.environment.Status
	known := s.records.named(written.LatestDependencySync)
	written.LatestDependencySync = ""
	isKnown := s.offer.isKnown()
	if isKnown {
		written.ChangedDependencies = s.offer.others
	}
	switch open := s.records.dependency(written.PendingRequests); {
	case open != nil:
		written.LatestDependencySync, written.DismissedDependencySync = open.Name, ""
	case known != nil && known.Status.State == v1alpha1.SyncStateDismissed && written.DismissedDependencySync != known.Name:
		// The replica that dismissed it crashed before it recorded that here, or is about to record it.
		written.DismissedDependencySync = known.Name
		written.Dismissals++
	case isKnown && len(s.offer.others) == 0:
		written.DismissedDependencySync = ""
	}
}

// isActive reports whether a record is pending, in progress, or to be retried.
func (s *status) isActive(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed:
		return isWanted(&s.environment.Spec, record)
	}
	return false
}

// over returns a predicate for finished requests: those whose records have ended, and decisions that no sync needs any more.
func (s *status) over() func(v1alpha1.PendingEnvironmentRequest) bool {
	begun := slices.ContainsFunc(s.records.open(v1alpha1.SyncTypeEnvironment), func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State != v1alpha1.SyncStatePending
	})
	return func(request v1alpha1.PendingEnvironmentRequest) bool {
		switch request.Type {
		case v1alpha1.EnvironmentRequestResolve:
			return !begun
		case v1alpha1.EnvironmentRequestRediscover:
			return s.rediscovered[request.ID]
		default:
			// The next request for a full refresh takes over a record that requires manual intervention.
			isWhole := isRefresh(&request) && len(request.Sync.Workloads) == 0
			return s.records.isAnswered(&request) || isWhole && s.records.needsIntervention(&request)
		}
	}
}

func historyLimit(e *v1alpha1.Environment) int {
	if limit := e.Spec.HistoryLimit; limit != nil {
		return int(*limit)
	}
	return defaultHistoryLimit
}

// expiryOf returns the expiry, zero if there is none.
func expiryOf(e *v1alpha1.Environment) time.Time {
	if at := expiry(e); at != nil {
		return at.Time
	}
	return time.Time{}
}

// expiry returns when the ttl of an environment expires, nil if it has none.
func expiry(e *v1alpha1.Environment) *metav1.Time {
	if e.Spec.TTL == nil {
		return nil
	}
	at := metav1.NewTime(e.CreationTimestamp.Add(e.Spec.TTL.Duration)).Rfc3339Copy()
	return &at
}
