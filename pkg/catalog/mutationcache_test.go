// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestRecordsAreWhatWasWrittenUntilTheCacheHasThem(t *testing.T) {
	const (
		retrying = v1alpha1.SyncStateRetrying
		failed   = v1alpha1.SyncStateFailed
		awaiting = v1alpha1.SyncStateManualIntervention
		applied  = v1alpha1.SyncStateApplied
	)
	record := func(attempts int32, state v1alpha1.SyncState) *v1alpha1.SyncStatus {
		return &v1alpha1.SyncStatus{
			ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "one"},
			Spec:       v1alpha1.SyncStatusSpec{Subject: v1alpha1.SyncSubject{UID: "shop"}},
			Status:     v1alpha1.SyncRecord{Attempts: attempts, State: state},
		}
	}
	for name, test := range map[string]struct {
		written, cached *v1alpha1.SyncStatus
		want            string
	}{
		"not heard of":                  {record(1, failed), nil, "1 Failed"},
		"heard of":                      {record(1, failed), record(1, failed), "1 Failed"},
		"heard of an earlier state":     {record(5, awaiting), record(5, failed), "5 ManualIntervention"},
		"heard of an earlier attempt":   {record(2, retrying), record(1, failed), "2 Retrying"},
		"heard that it was tried":       {record(2, applied), record(2, retrying), "2 Applied"},
		"somebody else has gone on":     {record(5, awaiting), record(6, retrying), "6 Retrying"},
		"somebody else has put an end":  {record(5, awaiting), record(5, v1alpha1.SyncStateDismissed), "5 Dismissed"},
		"the cache has what is not new": {nil, record(1, applied), "1 Applied"},
	} {
		t.Run(name, func(t *testing.T) {
			written, cached := newMutationCache(), []*v1alpha1.SyncStatus{}
			if test.written != nil {
				written.set(test.written)
			}
			if test.cached != nil {
				cached = append(cached, test.cached)
			}
			var got []string
			for _, record := range written.merge(cached, "shop") {
				got = append(got, fmt.Sprintf("%d %s", record.Status.Attempts, record.Status.State))
			}
			if !slices.Equal(got, []string{test.want}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if other := written.merge(nil, "bank"); len(other) > 0 {
				t.Errorf("another catalog has %v", other)
			}
		})
	}
}

func TestRecordsThatAreGoneAreNotRemembered(t *testing.T) {
	written := newMutationCache()
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "one"},
		Spec:       v1alpha1.SyncStatusSpec{Subject: v1alpha1.SyncSubject{UID: "shop"}},
	}
	for what, forget := range map[string]func(){
		"deleted": func() { written.delete(record) }, "of a catalog that is": func() { written.forget("shop") },
	} {
		written.set(record)
		forget()
		if left := written.merge(nil, "shop"); len(left) > 0 {
			t.Errorf("%s: %v", what, left)
		}
	}
}
