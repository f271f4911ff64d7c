// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// aged returns a record of a subject whose changes were detected some days ago.
func aged(subject types.UID, name string, days int, state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	record := in(catalog, state, true)
	record.Name, record.Spec.Subject.UID = name, subject
	record.Status.DetectedAt = metav1.NewTime(later.AddDate(0, 0, -days))
	return record
}

func TestExpired(t *testing.T) {
	dismissedLate := aged("a", "dismissed-late", 200, dismissed)
	dismissedLate.Status.ResolvedAt = &metav1.Time{Time: later.AddDate(0, 0, -2)}
	tests := []struct {
		name            string
		keep, most, day int32
		records         []*v1alpha1.SyncStatus
		want            []string
	}{
		{"nothing", 10, 1000, 90, nil, nil},
		{"too old, and just not", 0, 1000, 90, []*v1alpha1.SyncStatus{
			aged("a", "new", 1, autoApplied), aged("a", "edge", 90, applied), aged("a", "old", 91, applied), aged("a", "older", 92, dismissed),
		}, []string{"older", "old"}},
		{"the newest of each subject stay", 2, 1000, 90, []*v1alpha1.SyncStatus{
			aged("a", "a1", 300, autoApplied), aged("a", "a2", 200, autoApplied),
			aged("a", "a3", 100, autoApplied), aged("b", "b1", 400, autoApplied),
		}, []string{"a1"}},
		{"a record that is not settled stays", 0, 1, 90, []*v1alpha1.SyncStatus{
			aged("a", "failed", 100, failed), aged("a", "retrying", 100, retrying), aged("a", "waiting", 100, manualIntervention),
		}, nil},
		{"what was dismissed late counts from then", 0, 1000, 90, []*v1alpha1.SyncStatus{dismissedLate}, nil},
		{"more than the maximum", 1, 2, 90, []*v1alpha1.SyncStatus{
			aged("a", "a1", 4, autoApplied), aged("a", "a2", 3, autoApplied), aged("a", "a3", 2, autoApplied), aged("a", "a4", 1, autoApplied),
		}, []string{"a1", "a2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			retention := v1alpha1.Retention{Days: &test.day, KeepPerSubject: &test.keep, MaxPerSubject: &test.most}
			var got []string
			for _, record := range syncstatus.Expired(test.records, retention, later) {
				got = append(got, record.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("wrong records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExpiredOrphans has records of a deleted subject in different states.
func TestExpiredOrphans(t *testing.T) {
	triedLately := aged("a", "tried-lately", 200, failed)
	triedLately.Status.Error = &v1alpha1.SyncError{At: metav1.NewTime(later.AddDate(0, 0, -2))}
	records := []*v1alpha1.SyncStatus{
		aged("a", "new", 89, failed), triedLately, aged("a", "failed", 93, failed), aged("a", "retrying", 94, retrying),
		aged("b", "waiting", 92, manualIntervention), aged("b", "applied", 91, applied),
	}
	var got []string
	for _, record := range syncstatus.ExpiredOrphans(records, settings().Retention, later) {
		got = append(got, record.Name)
	}
	if diff := cmp.Diff([]string{"retrying", "failed", "waiting", "applied"}, got); diff != "" {
		t.Errorf("wrong records (-want +got):\n%s", diff)
	}
}

// TestExpiredByDefault has a busy catalog, which keeps the default maximum, and a quiet one, which keeps its last ten records.
func TestExpiredByDefault(t *testing.T) {
	var records []*v1alpha1.SyncStatus
	for i := range 1200 {
		busy := aged("busy", fmt.Sprint("busy", i), 0, autoApplied)
		busy.Status.DetectedAt = metav1.NewTime(later.Add(-time.Duration(i) * 30 * time.Second))
		records = append(records, busy)
	}
	for i := range 12 {
		records = append(records, aged("quiet", fmt.Sprint("quiet", i), 100+i, autoApplied))
	}
	counts := map[types.UID]int{}
	for _, record := range syncstatus.Expired(records, settings().Retention, later) {
		counts[record.Spec.Subject.UID]++
	}
	if diff := cmp.Diff(map[types.UID]int{"busy": 200, "quiet": 2}, counts); diff != "" {
		t.Errorf("wrong numbers of expired records (-want +got):\n%s", diff)
	}
	retention := settings().Retention
	retention.Days = ptr.To(int32(3650))
	if got := len(syncstatus.Expired(records, retention, later)); got != 200 {
		t.Errorf("%d records expire because of their number", got)
	}
}
