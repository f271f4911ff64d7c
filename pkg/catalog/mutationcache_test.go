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

func TestMutationCacheMerge(t *testing.T) {
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
		"not cached":                         {record(1, failed), nil, "1 Failed"},
		"cached":                             {record(1, failed), record(1, failed), "1 Failed"},
		"an earlier state is cached":         {record(5, awaiting), record(5, failed), "5 ManualIntervention"},
		"an earlier attempt is cached":       {record(2, retrying), record(1, failed), "2 Retrying"},
		"the start of the attempt is cached": {record(2, applied), record(2, retrying), "2 Applied"},
		"another client has retried it":      {record(5, awaiting), record(6, retrying), "6 Retrying"},
		"another client has dismissed it":    {record(5, awaiting), record(5, v1alpha1.SyncStateDismissed), "5 Dismissed"},
		"only cached":                        {nil, record(1, applied), "1 Applied"},
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
				t.Errorf("another catalog has cached records: %v", other)
			}
		})
	}
}

func TestMutationCacheForgets(t *testing.T) {
	written := newMutationCache()
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "one"},
		Spec:       v1alpha1.SyncStatusSpec{Subject: v1alpha1.SyncSubject{UID: "shop"}},
	}
	for what, forget := range map[string]func(){
		"deleted record": func() { written.delete(record) }, "deleted catalog": func() { written.forget("shop") },
	} {
		written.set(record)
		forget()
		if left := written.merge(nil, "shop"); len(left) > 0 {
			t.Errorf("%s: records left: %v", what, left)
		}
	}
}
