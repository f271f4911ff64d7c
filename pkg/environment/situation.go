// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// annotationRequest is the id of the request that last moved a record, where the record's batch does not say it.
const annotationRequest = v1alpha1.AnnotationRequest

// verdict is why something is not as it should be; the zero value says that it is.
type verdict struct{ reason, message string }

func (v verdict) ok() bool { return v.reason == "" }

// situation is all that a turn decides from.
type situation struct {
	environment *v1alpha1.Environment
	// catalog is nil if there is none.
	catalog *v1alpha1.AppCatalog
	// records are those that have not come to their end, or had not when the status was written, the oldest first.
	records []*v1alpha1.SyncStatus
	// obstacle is why nothing can be synced.
	obstacle verdict
	// lost is why nothing is synced by itself: whoever wanted it may not do it any more.
	lost verdict
	// notCopied is what of the source is not copied, because the catalog's editor may not read it.
	notCopied plan.Denied
	policy    *v1alpha1.SyncPolicySpec
	now       time.Time
	// offer is what the catalog would bring, nil while that is not known.
	offer *offer
	// busy says that a run goes on.
	busy bool
	// rediscovered are the requests to find dependencies anew that have been carried out.
	rediscovered map[string]bool
	// undone is why something has not been done that the rest of the turn does not depend on. It is tried again in another turn.
	undone error
}

// open are the records of a type that have not come to their end, the oldest first.
func (s *situation) open(of v1alpha1.SyncType) []*v1alpha1.SyncStatus {
	return slices.DeleteFunc(slices.Clone(s.records), func(record *v1alpha1.SyncStatus) bool {
		return record.Spec.Type != of || syncstatus.Ended(record)
	})
}

// dependency is the open record about all that workloads refer to, nil if there is none.
func (s *situation) dependency() *v1alpha1.SyncStatus {
	for _, record := range slices.Backward(s.open(v1alpha1.SyncTypeDependency)) {
		if !s.isPartial(record) {
			return record
		}
	}
	return nil
}

// isPartial says whether a record is about some workloads, as its user has asked for.
func (s *situation) isPartial(record *v1alpha1.SyncStatus) bool {
	asked := s.request(record)
	return asked != nil && len(asked.Sync.Workloads) > 0
}

// take puts a record that has been written in the place of what it was.
func (s *situation) take(record *v1alpha1.SyncStatus) {
	s.records = slices.DeleteFunc(s.records, func(r *v1alpha1.SyncStatus) bool { return r.Name == record.Name })
	s.records = append(s.records, record)
	slices.SortStableFunc(s.records, compareAges)
}

// called is the record of a name, nil if it is not among those of the situation.
func (s *situation) called(name string) *v1alpha1.SyncStatus {
	for _, record := range s.records {
		if record.Name == name {
			return record
		}
	}
	return nil
}

// of is the record that a request has become, nil if it has become none yet.
func (s *situation) of(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.SyncStatus {
	for _, record := range s.records {
		if record.Spec.Batch == request.ID || record.Annotations[annotationRequest] == request.ID {
			return record
		}
	}
	return nil
}

// request is the one of the type Sync that a record stands for, nil if there is none.
func (s *situation) request(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
	for i := range s.environment.Status.PendingRequests {
		request := &s.environment.Status.PendingRequests[i]
		is := request.ID == record.Spec.Batch || request.ID == record.Annotations[annotationRequest]
		if is && request.Type == v1alpha1.EnvironmentRequestSync && request.Sync != nil {
			return request
		}
	}
	return nil
}

// pinned is the revision that the environment is to stay at, 0 if there is none.
func (s *situation) pinned() int64 {
	if revision := s.environment.Spec.PinnedRevision; revision != nil {
		return *revision
	}
	return 0
}

// offered is the newest revision of the catalog, 0 if there is none.
func (s *situation) offered() int64 {
	if s.catalog == nil {
		return 0
	}
	return s.catalog.Status.Revision
}

// wanted is the revision that the next sync brings that nobody forces: 0 if there is none.
func (s *situation) wanted() int64 { return cmp.Or(s.pinned(), s.offered()) }

// compareOrder orders records that wait by when they were asked for. Times are of seconds: of records of the same second, that of
// a user is the newer, and of those that of the later request.
func (s *situation) compareOrder(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time), cmp.Compare(s.order(a), s.order(b)))
}

func (s *situation) order(record *v1alpha1.SyncStatus) int {
	if record.Status.AutoTriggered {
		return -1
	}
	return slices.IndexFunc(s.environment.Status.PendingRequests, func(r v1alpha1.PendingEnvironmentRequest) bool {
		return r.ID == record.Spec.Batch
	}) + 1
}

// answered says whether the record that a request has become has come to its end.
func (s *situation) answered(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := s.of(request)
	return record != nil && syncstatus.Ended(record)
}

// needsSomebody says whether the record that a request has become is not tried again before somebody asks for it.
func (s *situation) needsSomebody(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := s.of(request)
	return record != nil && record.Status.State == v1alpha1.SyncStateManualIntervention
}

// compareAges orders records by what they began with.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
