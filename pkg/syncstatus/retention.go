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

// Expired returns the records that are to go by a retention, which has its defaults, the oldest first. Those that are not
// settled stay, and so do the newest of each subject.
func Expired(records []*v1alpha1.SyncStatus, retention v1alpha1.Retention, now time.Time) []*v1alpha1.SyncStatus {
	return expired(records, retention, now, Settled)
}

// ExpiredOrphans returns those that are to go of records whose subjects are gone. Nobody can go on with what they tell of,
// so that none stays for that, nor because it is one of the newest of its subject.
func ExpiredOrphans(records []*v1alpha1.SyncStatus, retention v1alpha1.Retention, now time.Time) []*v1alpha1.SyncStatus {
	retention.KeepPerSubject = ptr.To[int32](0)
	return expired(records, retention, now, func(*v1alpha1.SyncStatus) bool { return true })
}

func expired(
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
			if i >= int(*retention.MaxPerSubject) || lastTouched(record).Before(oldest) {
				expired = append(expired, record)
			}
		}
	}
	slices.SortFunc(expired, compareAges)
	return expired
}

// compareAges orders records by when something was last done about them; names make the order the same each time.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(lastTouched(a).Compare(lastTouched(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func lastTouched(record *v1alpha1.SyncStatus) time.Time {
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
