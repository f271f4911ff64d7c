// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/notification/condition"
)

func TestSet(t *testing.T) {
	const (
		ready, delivering    = v1alpha1.ConditionReady, v1alpha1.ConditionDelivering
		reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	)
	failing := func(failures int32) v1alpha1.NotificationSinkStatus {
		return v1alpha1.NotificationSinkStatus{Messages: 1, Failures: failures, LastError: "503 Service Unavailable"}
	}
	for name, tt := range map[string]struct {
		status v1alpha1.NotificationSinkStatus
		facts  condition.Facts
		want   map[string]string
	}{
		"delivering": {
			status: v1alpha1.NotificationSinkStatus{Messages: 1},
			want: map[string]string{
				ready: "True Succeeded: Notifications are collected and sent", delivering: "True Delivering: The receiver has accepted the last message",
			},
		},
		"new": {want: map[string]string{
			ready: "True Succeeded: Notifications are collected and sent", delivering: "Unknown NothingSent: No message has been sent yet",
		}},
		"failed once": {status: failing(1), want: map[string]string{
			ready:      "True Succeeded: Notifications are collected and sent",
			delivering: "False DeliveryRetrying: The message is sent again: 503 Service Unavailable",
		}},
		"failing": {status: failing(3), want: map[string]string{
			ready:      "False DeliveryFailed: Failed 3 times in a row, and is sent again: 503 Service Unavailable",
			delivering: "False DeliveryFailed: Failed 3 times in a row, and is sent again: 503 Service Unavailable",
		}},
		"rejected": {status: failing(1), facts: condition.Facts{Rejected: true}, want: map[string]string{
			ready:      "True Succeeded: Notifications are collected and sent",
			delivering: "False DeliveryRejected: The receiver rejected the last message, which is not sent again: 503 Service Unavailable",
		}},
		"without its Secret": {status: failing(1), facts: condition.Facts{Reason: v1alpha1.ReasonSecretNotFound}, want: map[string]string{
			ready: "False SecretNotFound: 503 Service Unavailable", delivering: "False SecretNotFound: 503 Service Unavailable",
			stalled: "True SecretNotFound: 503 Service Unavailable",
		}},
		"a window": {facts: condition.Facts{Window: "window maintenance closes 18:00 UTC"}, want: map[string]string{
			ready:      "True Succeeded: Notifications are collected and sent",
			delivering: "False WindowClosed: window maintenance closes 18:00 UTC",
		}},
		"suspended": {
			facts: condition.Facts{Held: conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "by spec"}, Window: "closed"},
			want:  map[string]string{ready: "False Suspended: by spec", delivering: "False Suspended: by spec"},
		},
		"the store fails": {facts: condition.Facts{Failure: "cannot store"}, want: map[string]string{
			ready: "False Progressing: cannot store", delivering: "False Progressing: cannot store", reconciling: "True Progressing: cannot store",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &v1alpha1.NotificationSink{Status: tt.status}
			sink.Status.ObservedGeneration = 3
			condition.Set(sink, tt.facts, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			if diff := cmp.Diff(tt.want, lines(t, sink.Status.Conditions)); diff != "" {
				t.Errorf("wrong conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// lines returns the conditions by type. It fails the test if one is of another generation.
func lines(t *testing.T, conditions []metav1.Condition) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
		if c.ObservedGeneration != 3 {
			t.Errorf("incomplete condition %+v", c)
		}
	}
	return out
}
