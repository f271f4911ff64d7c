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

// defaultHistoryLimit is that of an environment that says nothing of it.
const defaultHistoryLimit = 10

// fold takes up in the status what came of the runs that it says go on. It returns the records of those that have done everything.
func (s *situation) fold() (ended []*v1alpha1.SyncStatus) {
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

// complete takes up that a run has done everything. One of some workloads has not: the environment has the revision when all do.
func (s *situation) complete(record *v1alpha1.SyncStatus) {
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

// syncOf is the SyncStatus of a revision of the catalog, empty if that is not known any more.
func (s *situation) syncOf(revision int64) string {
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

// describe has the status say what is true now. active are the records of the run that begins.
func (s *situation) describe(active []*v1alpha1.SyncStatus) {
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

// activeSyncs are the runs that go on and begin, of which the status is to be told what came of them, and then as many as may be
// shown of those that are to come.
func (s *situation) activeSyncs(begin []*v1alpha1.SyncStatus) []string {
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

// describeOffer says what the catalog offers, and what of it is not here as far as it is known.
func (s *situation) describeOffer() {
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

// isConflicted says whether somebody has to decide before a run can go on.
func (s *situation) isConflicted() bool {
	return slices.ContainsFunc(s.records, func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State == v1alpha1.SyncStateConflicted
	})
}

// describeDependencies says what of what else the environment has is not as it should be, as far as it is known, and which record
// tells of what has changed in the source. A record that was dismissed is named until there is another, or nothing to offer.
func (s *situation) describeDependencies() {
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
		// The replica that dismissed it has died before it noted that here, or will note it soon.
		status.DismissedDependencySync = told.Name
		status.Dismissals++
	case isKnown && len(s.offer.others) == 0:
		status.DismissedDependencySync = ""
	}
}

// isActive says whether a run waits, is being done, or is to be tried again.
func (s *situation) isActive(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed:
		return s.isWanted(record)
	}
	return false
}

// failed says whether what a record tells of could not be done yet.
func failed(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return false
}

// over says which requests are over: those whose records have come to their end, and decisions that no run needs any more.
func (s *situation) over() func(v1alpha1.PendingEnvironmentRequest) bool {
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
			// A refresh of everything that needs somebody is that of whoever asks next: nothing but its record tells of it.
			isWhole := isRefresh(&request) && len(request.Sync.Workloads) == 0
			return s.answered(&request) || isWhole && s.needsSomebody(&request)
		}
	}
}

func historyLimit(e *v1alpha1.Environment) int {
	if limit := e.Spec.HistoryLimit; limit != nil {
		return int(*limit)
	}
	return defaultHistoryLimit
}

// expiryOf is expiry as a time, the zero time if there is none.
func expiryOf(e *v1alpha1.Environment) time.Time {
	if at := expiry(e); at != nil {
		return at.Time
	}
	return time.Time{}
}

// expiry is when an environment is deleted by its ttl, nil if it is not.
func expiry(e *v1alpha1.Environment) *metav1.Time {
	if e.Spec.TTL == nil {
		return nil
	}
	at := metav1.NewTime(e.CreationTimestamp.Add(e.Spec.TTL.Duration)).Rfc3339Copy()
	return &at
}
