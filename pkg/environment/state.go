// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// annotationRequest is the id of the request that last changed a record, if it differs from the batch of the record.
const annotationRequest = v1alpha1.AnnotationRequest

// state is the input from which one reconcile of an environment decides.
type state struct {
	environment *v1alpha1.Environment
	// catalog is nil if it does not exist.
	catalog *v1alpha1.AppCatalog
	// records are those that have not ended, or had not when the status was last written, oldest first.
	records []*v1alpha1.SyncStatus
	// obstacle is why nothing can be synced.
	obstacle conditions.Reason
	// lost is why nothing is synced automatically: the user who turned it on has lost a permission.
	lost conditions.Reason
	// notCopied are the types that are not copied, because the catalog's editor is not allowed to read them.
	notCopied plan.Denied
	policy    *v1alpha1.SyncPolicySpec
	now       time.Time
	// offer is what a sync would change, nil while that is unknown.
	offer *offer
	// syncing is set while a sync is in progress.
	syncing bool
	// rediscovered are the ids of the rediscover requests that are done.
	rediscovered map[string]bool
	// undone is an error that does not stop the reconcile. It is retried by another one.
	undone error
}

// open returns the records of a type that have not ended, oldest first.
func (s *state) open(of v1alpha1.SyncType) []*v1alpha1.SyncStatus {
	return slices.DeleteFunc(slices.Clone(s.records), func(record *v1alpha1.SyncStatus) bool {
		return record.Spec.Type != of || syncstatus.Ended(record)
	})
}

// dependency returns the open record about all dependencies, nil if there is none.
func (s *state) dependency() *v1alpha1.SyncStatus {
	for _, record := range slices.Backward(s.open(v1alpha1.SyncTypeDependency)) {
		if !s.isPartial(record) {
			return record
		}
	}
	return nil
}

// isPartial reports whether the user has requested some workloads only.
func (s *state) isPartial(record *v1alpha1.SyncStatus) bool {
	asked := s.request(record)
	return asked != nil && len(asked.Sync.Workloads) > 0
}

// take replaces a record with its written version.
func (s *state) take(record *v1alpha1.SyncStatus) {
	s.records = slices.DeleteFunc(s.records, func(r *v1alpha1.SyncStatus) bool { return r.Name == record.Name })
	s.records = append(s.records, record)
	slices.SortStableFunc(s.records, compareAges)
}

// called returns the record with a name, nil if there is none.
func (s *state) called(name string) *v1alpha1.SyncStatus {
	for _, record := range s.records {
		if record.Name == name {
			return record
		}
	}
	return nil
}

// of returns the record of a request, nil if there is none yet.
func (s *state) of(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.SyncStatus {
	for _, record := range s.records {
		if record.Spec.Batch == request.ID || record.Annotations[annotationRequest] == request.ID {
			return record
		}
	}
	return nil
}

// request returns the Sync request of a record, nil if there is none.
func (s *state) request(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
	for i := range s.environment.Status.PendingRequests {
		request := &s.environment.Status.PendingRequests[i]
		is := request.ID == record.Spec.Batch || request.ID == record.Annotations[annotationRequest]
		if is && request.Type == v1alpha1.EnvironmentRequestSync && request.Sync != nil {
			return request
		}
	}
	return nil
}

// pinned returns the pinned revision, 0 if there is none.
func (s *state) pinned() int64 {
	if revision := s.environment.Spec.PinnedRevision; revision != nil {
		return *revision
	}
	return 0
}

// offered returns the newest revision of the catalog, 0 if there is none.
func (s *state) offered() int64 {
	if s.catalog == nil {
		return 0
	}
	return s.catalog.Status.Revision
}

// wanted returns the revision of the next sync that is not forced, 0 if there is none.
func (s *state) wanted() int64 { return cmp.Or(s.pinned(), s.offered()) }

// compareOrder orders pending records by request time. Times have a resolution of a second: within a second, requests of users are newer
// than automatic ones, and ordered by their position in the status.
func (s *state) compareOrder(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time), cmp.Compare(s.order(a), s.order(b)))
}

func (s *state) order(record *v1alpha1.SyncStatus) int {
	if record.Status.AutoTriggered {
		return -1
	}
	return slices.IndexFunc(s.environment.Status.PendingRequests, func(r v1alpha1.PendingEnvironmentRequest) bool {
		return r.ID == record.Spec.Batch
	}) + 1
}

// answered reports whether the record of a request has ended.
func (s *state) answered(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := s.of(request)
	return record != nil && syncstatus.Ended(record)
}

// needsIntervention reports whether the record of a request is in ManualIntervention.
func (s *state) needsIntervention(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := s.of(request)
	return record != nil && record.Status.State == v1alpha1.SyncStateManualIntervention
}

// compareAges orders records by age, oldest first.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
