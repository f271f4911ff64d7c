// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// requests are the pending requests of users, oldest first.
type requests []v1alpha1.PendingEnvironmentRequest

// of returns the Sync request of a record, nil if there is none.
func (r requests) of(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
	for i := range r {
		request := &r[i]
		is := request.ID == record.Spec.Batch || request.ID == record.Annotations[annotationRequest]
		if is && request.Type == v1alpha1.EnvironmentRequestSync && request.Sync != nil {
			return request
		}
	}
	return nil
}

// isPartial reports whether the user has requested some workloads only.
func (r requests) isPartial(record *v1alpha1.SyncStatus) bool {
	request := r.of(record)
	return request != nil && len(request.Sync.Workloads) > 0
}

// replaces reports whether the newer of two syncs replaces the older. A sync of some workloads does not replace one of all.
func (r requests) replaces(newer, older *v1alpha1.SyncStatus) bool {
	return !r.isPartial(newer) || r.isPartial(older)
}

// compareOrder orders pending records by request time. Times have a resolution of a second: within a second, requests of users are newer
// than automatic ones, and ordered by their position in the status.
func (r requests) compareOrder(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time), cmp.Compare(r.order(a), r.order(b)))
}

func (r requests) order(record *v1alpha1.SyncStatus) int {
	if record.Status.AutoTriggered {
		return -1
	}
	return slices.IndexFunc(r, func(request v1alpha1.PendingEnvironmentRequest) bool { return request.ID == record.Spec.Batch }) + 1
}

// undecided returns the newest decision about conflicts that has not been applied to a record, nil if there is none.
func (r requests) undecided(record *v1alpha1.SyncStatus) *v1alpha1.PendingEnvironmentRequest {
	for i := range slices.Backward(r) {
		if request := &r[i]; request.Type == v1alpha1.EnvironmentRequestResolve {
			if record.Annotations[annotationRequest] == request.ID {
				return nil
			}
			return request
		}
	}
	return nil
}

// isRefresh reports whether a request is about dependencies only. All such requests share one open record.
func isRefresh(request *v1alpha1.PendingEnvironmentRequest) bool {
	return request.Sync != nil && request.Sync.Action == v1alpha1.SyncActionCluster
}

// requesterOf returns the user who made a request.
func requesterOf(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.AutomatedBy {
	return &v1alpha1.AutomatedBy{Username: request.Actor, UID: request.UID, Groups: request.Groups, Time: request.Time}
}
