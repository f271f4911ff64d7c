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

// recordCompleted records completed syncs in the status, and returns their records.
func (s *state) recordCompleted() (ended []*v1alpha1.SyncStatus) {
	for _, name := range s.environment.Status.ActiveSyncs {
		if record := s.called(name); record != nil && record.Status.State == v1alpha1.SyncStateCompleted {
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
func (s *state) complete(record *v1alpha1.SyncStatus) {
	status := &s.environment.Status
	status.Dismissals = 0
	if s.isPartial(record) {
		return
	}
	status.DismissedDependencySync = ""
	status.LastDependencySyncedAt = record.Status.ResolvedAt.DeepCopy()
	if record.Spec.Type != v1alpha1.SyncTypeEnvironment {
		return
	}
	status.LastCatalogSyncedAt = record.Status.ResolvedAt.DeepCopy()
	status.AppliedRevision, status.AppliedCatalogSync = record.Status.Revision, s.syncOf(record.Status.Revision)
	status.DismissedCatalogSync = ""
	status.History = slices.DeleteFunc(slices.Clone(status.History), func(entry v1alpha1.CatalogRevision) bool {
		return entry.Revision == record.Status.Revision
	})
	status.History = slices.Insert(status.History, 0, v1alpha1.CatalogRevision{
		Revision: record.Status.Revision, Time: *record.Status.ResolvedAt, SyncStatus: record.Name,
	})
}

// syncOf returns the SyncStatus of a catalog revision, empty if it is no longer in the history.
func (s *state) syncOf(revision int64) string {
	if s.catalog == nil {
		return ""
	}
	for _, entry := range s.catalog.Status.History {
		if entry.Revision == revision {
			return entry.SyncStatus
		}
	}
	if s.catalog.Status.Revision == revision {
		return s.catalog.Status.LatestSync
	}
	return ""
}

// describe sets the fields of the status other than conditions. active are the records of the sync that is about to start.
func (s *state) describe(active []*v1alpha1.SyncStatus) {
	status := &s.environment.Status
	status.ObservedGeneration = s.environment.Generation
	status.PendingEdits = nil
	status.History = status.History[:min(len(status.History), historyLimit(s.environment))]
	s.describeOffer()
	s.describeDependencies()
	status.ActiveSyncs, status.LastError = s.activeSyncs(active), nil
	for _, record := range s.records {
		if failed(record) {
			status.LastError = record.Status.Error
		}
	}
	status.PendingRequests = slices.DeleteFunc(slices.Clone(status.PendingRequests), s.over())
	status.ExpiresAt = expiry(s.environment)
}

// activeSyncs returns the records that are in progress or about to start, whose results must be recorded later, and then as many waiting
// ones as fit.
func (s *state) activeSyncs(begin []*v1alpha1.SyncStatus) []string {
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
func (s *state) describeOffer() {
	status := &s.environment.Status
	if !s.isConflicted() {
		status.Conflicts = nil
	}
	if s.offered() == 0 {
		return
	}
	status.LatestCatalogSync, status.LatestRevision = s.catalog.Status.LatestSync, s.offered()
	if s.offer == nil || s.offer.failure != nil {
		return
	}
	status.ChangedWorkloadCount = int32(len(s.offer.workloads))
	status.ChangedWorkloads = slices.Clip(s.offer.workloads[:min(len(s.offer.workloads), syncstatus.MaxListed)])
	status.NotCopied = slices.Clip(s.offer.notCopied[:min(len(s.offer.notCopied), v1alpha1.MaxNotCopied)])
	if s.isConflicted() {
		status.Conflicts = slices.Clip(s.offer.conflicts[:min(len(s.offer.conflicts), v1alpha1.MaxConflicts)])
	}
}

// isConflicted reports whether a user has to resolve a conflict.
func (s *state) isConflicted() bool {
	return slices.ContainsFunc(s.records, func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State == v1alpha1.SyncStateConflicted
	})
}

// describeDependencies sets how many dependencies differ from the source, as far as known, and the record about them. A dismissed record
// is named until there is a newer one, or no difference.
func (s *state) describeDependencies() {
	status := &s.environment.Status
	told := s.called(status.LatestDependencySync)
	status.LatestDependencySync = ""
	isKnown := s.offer.isKnown()
	if isKnown {
		status.ChangedDependencies = s.offer.others
	}
	switch open := s.dependency(); {
	case open != nil:
		status.LatestDependencySync, status.DismissedDependencySync = open.Name, ""
	case told != nil && told.Status.State == v1alpha1.SyncStateDismissed && status.DismissedDependencySync != told.Name:
		// The replica that dismissed it crashed before it recorded that here, or is about to record it.
		status.DismissedDependencySync = told.Name
		status.Dismissals++
	case isKnown && len(s.offer.others) == 0:
		status.DismissedDependencySync = ""
	}
}

// isActive reports whether a record is pending, in progress, or to be retried.
func (s *state) isActive(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed:
		return s.isWanted(record)
	}
	return false
}

// failed reports whether the last attempt of a record failed.
func failed(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return false
}

// over returns a predicate for finished requests: those whose records have ended, and decisions that no sync needs any more.
func (s *state) over() func(v1alpha1.PendingEnvironmentRequest) bool {
	begun := slices.ContainsFunc(s.open(v1alpha1.SyncTypeEnvironment), func(record *v1alpha1.SyncStatus) bool {
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
			return s.answered(&request) || isWhole && s.needsIntervention(&request)
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
