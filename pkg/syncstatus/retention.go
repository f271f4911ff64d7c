// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Expired returns the records that a retention, which must have its defaults, does not keep, oldest first. Records that are not settled are
// kept, as are the newest of each subject.
func Expired(records []*v1alpha1.SyncStatus, retention v1alpha1.Retention, now time.Time) []*v1alpha1.SyncStatus {
	return expiredBy(records, retention, now, Settled)
}

// ExpiredOrphans is Expired for records of deleted subjects. They need no further action, so neither those that are not settled nor the
// newest of a subject are kept.
func ExpiredOrphans(records []*v1alpha1.SyncStatus, retention v1alpha1.Retention, now time.Time) []*v1alpha1.SyncStatus {
	retention.KeepPerSubject = ptr.To[int32](0)
	return expiredBy(records, retention, now, func(*v1alpha1.SyncStatus) bool { return true })
}

func expiredBy(
	records []*v1alpha1.SyncStatus, retention v1alpha1.Retention, now time.Time, settled func(*v1alpha1.SyncStatus) bool,
) []*v1alpha1.SyncStatus {
	bySubject := map[types.UID][]*v1alpha1.SyncStatus{}
	for _, record := range records {
		bySubject[record.Spec.Subject.UID] = append(bySubject[record.Spec.Subject.UID], record)
	}
	oldest := now.AddDate(0, 0, -int(*retention.Days))
	var expired []*v1alpha1.SyncStatus
	for _, ofSubject := range bySubject {
		slices.SortFunc(ofSubject, func(a, b *v1alpha1.SyncStatus) int { return compareAges(b, a) })
		for i, record := range ofSubject {
			if i < int(*retention.KeepPerSubject) || !settled(record) {
				continue
			}
			if i >= int(*retention.MaxPerSubject) || lastChanged(record).Before(oldest) {
				expired = append(expired, record)
			}
		}
	}
	slices.SortFunc(expired, compareAges)
	return expired
}

// compareAges orders records by their last change, then by name.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(lastChanged(a).Compare(lastChanged(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func lastChanged(record *v1alpha1.SyncStatus) time.Time {
	last := record.Status.DetectedAt.Time
	if started := record.Status.StartedAt; started != nil && started.After(last) {
		last = started.Time
	}
	if problem := record.Status.Error; problem != nil && problem.At.After(last) {
		last = problem.At.Time
	}
	if resolved := record.Status.ResolvedAt; resolved != nil && resolved.After(last) {
		last = resolved.Time
	}
	return last
}
