// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// annotationRequest is the id of the request that last changed a record, if it differs from the batch of the record.
const annotationRequest = v1alpha1.AnnotationRequest

// records are the records of an environment that have not ended, or had not when the status was last written, oldest first.
type records []*v1alpha1.SyncStatus

// open returns the records of a type that have not ended, oldest first.
func (r records) open(of v1alpha1.SyncType) records {
	return slices.DeleteFunc(slices.Clone(r), func(record *v1alpha1.SyncStatus) bool {
		return record.Spec.Type != of || syncstatus.Ended(record)
	})
}

// dependency returns the open record about all dependencies, nil if there is none.
func (r records) dependency(requests requests) *v1alpha1.SyncStatus {
	for _, record := range slices.Backward(r.open(v1alpha1.SyncTypeDependency)) {
		if !requests.isPartial(record) {
			return record
		}
	}
	return nil
}

// with returns the records with the written version of one.
func (r records) with(written *v1alpha1.SyncStatus) records {
	out := slices.DeleteFunc(slices.Clone(r), func(record *v1alpha1.SyncStatus) bool { return record.Name == written.Name })
	out = append(out, written)
	slices.SortStableFunc(out, compareAges)
	return out
}

// named returns the record with a name, nil if there is none.
func (r records) named(name string) *v1alpha1.SyncStatus {
	return r.first(func(record *v1alpha1.SyncStatus) bool { return record.Name == name })
}

// of returns the record of a request, nil if there is none yet.
func (r records) of(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.SyncStatus {
	return r.first(func(record *v1alpha1.SyncStatus) bool {
		return record.Spec.Batch == request.ID || record.Annotations[annotationRequest] == request.ID
	})
}

// in returns the oldest record in a state, nil if there is none.
func (r records) in(state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	return r.first(func(record *v1alpha1.SyncStatus) bool { return record.Status.State == state })
}

func (r records) first(matches func(*v1alpha1.SyncStatus) bool) *v1alpha1.SyncStatus {
	if at := slices.IndexFunc(r, matches); at >= 0 {
		return r[at]
	}
	return nil
}

// isAnswered reports whether the record of a request has ended.
func (r records) isAnswered(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := r.of(request)
	return record != nil && syncstatus.Ended(record)
}

// needsIntervention reports whether the record of a request is in ManualIntervention.
func (r records) needsIntervention(request *v1alpha1.PendingEnvironmentRequest) bool {
	record := r.of(request)
	return record != nil && record.Status.State == v1alpha1.SyncStateManualIntervention
}

// isPending reports whether a desired sync has not started.
func (r records) isPending(w desiredSync) bool {
	record := r.first(func(record *v1alpha1.SyncStatus) bool {
		return record.Spec.Type == w.of && record.Spec.Batch == w.batch
	})
	return record == nil || record.Status.State == v1alpha1.SyncStatePending
}

// superseded counts the superseded records of the batches with a prefix.
func (r records) superseded(prefix string) int {
	count := 0
	for _, record := range r {
		if strings.HasPrefix(record.Spec.Batch, prefix) && record.Status.State == v1alpha1.SyncStateSuperseded {
			count++
		}
	}
	return count
}

// lastFailed returns the newest record whose last attempt failed, nil if there is none.
func (r records) lastFailed() *v1alpha1.SyncStatus {
	for _, record := range slices.Backward(r) {
		if failed(record) {
			return record
		}
	}
	return nil
}

// overtaken returns the older records that a sync replaces, of those that wait for a retry or for a user.
func (r records) overtaken(by *v1alpha1.SyncStatus, requests requests) records {
	if by.Spec.Type != v1alpha1.SyncTypeEnvironment {
		return nil
	}
	var out records
	for _, record := range r.open(v1alpha1.SyncTypeEnvironment) {
		waits := record.Status.State == v1alpha1.SyncStatePending || record.Status.State == v1alpha1.SyncStateInProgress
		if record.Name != by.Name && !waits && compareAges(record, by) <= 0 && requests.replaces(by, record) {
			out = append(out, record)
		}
	}
	return out
}

// failed reports whether the last attempt of a record failed.
func failed(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return false
}

// isAutomatic reports whether a record was created automatically and no user has requested it since.
func isAutomatic(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && record.Status.RequestedBy == nil
}

// actionOf returns the action of a record.
func actionOf(record *v1alpha1.SyncStatus) v1alpha1.SyncAction {
	if record.Spec.Type == v1alpha1.SyncTypeDependency {
		return v1alpha1.SyncActionCluster
	}
	return cmp.Or(record.Status.Action, v1alpha1.SyncActionAll)
}

// compareAges orders records by age, oldest first.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
