// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

func TestSink(t *testing.T) {
	type sink = *v1alpha1.NotificationSink
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) func(sink) {
		return func(s sink) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	unready := func(reason, message string) func(sink) {
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	}
	pending := func(n int64, next time.Duration) func(sink) {
		return func(s sink) { s.Status.Pending, s.Status.NextAttemptTime = n, &metav1.Time{Time: noon.Add(next)} }
	}
	failures := func(n int32) func(sink) {
		return func(s sink) { s.Status.Failures, s.Status.LastError = n, "503 Service\nUnavailable" }
	}
	const lost = `user "jane" may not list changes.configbutler.ai in the namespace shop`
	tests := []struct {
		name string
		do   []func(sink)
		want string
	}{
		{name: "a sink that works", want: "Delivering"},
		{name: "a new one", do: []func(sink){func(s sink) { s.Status = v1alpha1.NotificationSinkStatus{} }}, want: "Not looked at yet"},
		{name: "before the first message", do: []func(sink){func(s sink) { s.Status.Messages = 0 }}, want: "Nothing sent yet"},
		{name: "an edited one", do: []func(sink){func(s sink) { s.Generation = 4 }}, want: "Taking over a change of the spec"},
		{name: "a deleted one", do: []func(sink){func(s sink) { s.DeletionTimestamp = &metav1.Time{} }, failures(2)}, want: "Deleting"},
		{name: "a suspended one", do: []func(sink){func(s sink) { s.Spec.Suspend = true }, failures(2)}, want: "Suspended"},
		{
			name: "all suspended", want: "Holding 1,200: suspended by SyncPolicy default",
			do: []func(sink){unready(v1alpha1.ReasonNotificationsSuspended, "suspended by SyncPolicy default"), pending(1200, time.Hour)},
		},
		{
			name: "all suspended, with nothing to send", want: "Held: suspended by SyncPolicy default",
			do: []func(sink){unready(v1alpha1.ReasonNotificationsSuspended, "suspended by SyncPolicy default")},
		},
		{name: "a lost permission", do: []func(sink){unready(v1alpha1.ReasonPermissionLost, lost), failures(2)}, want: "Not sent: " + lost},
		{
			name: "no Secret", do: []func(sink){unready(v1alpha1.ReasonSecretNotFound, "Secret shop/slack does not exist"), pending(2, 0)},
			want: "Secret shop/slack does not exist",
		},
		{name: "a start", do: []func(sink){unready(v1alpha1.ReasonProgressing, "Permissions are being checked")}, want: "Permissions are being checked"},
		{name: "a failure", do: []func(sink){failures(1)}, want: "Failed once: 503 Service Unavailable"},
		{
			name: "failures", do: []func(sink){unready(v1alpha1.ReasonDeliveryFailed, "no"), failures(3), pending(2, 8*time.Second)},
			want: "Failed 3 times: 503 Service Unavailable, next attempt in 8s",
		},
		{
			name: "a rejection", want: "Rejected: channel_not_found",
			do: []func(sink){
				condition(v1alpha1.ConditionDelivering, metav1.ConditionFalse, v1alpha1.ReasonDeliveryRejected, "no"),
				func(s sink) { s.Status.Failures, s.Status.LastError = 1, "channel_not_found" },
			},
		},
		{
			name: "a closed window", want: "Holding 12: window maintenance closes 18:00 UTC",
			do: []func(sink){
				condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonWindowClosed, "window maintenance closes 18:00 UTC"),
				pending(12, 6*time.Hour),
			},
		},
		{name: "a digest", do: []func(sink){pending(2, 25*time.Second)}, want: "2 waiting, sent in 25s"},
		{name: "a message that is being sent", do: []func(sink){pending(1, -time.Second)}, want: "1 waiting"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &v1alpha1.NotificationSink{
				ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: v1alpha1.NotificationSinkStatus{ObservedGeneration: 3, Messages: 7},
			}
			for _, do := range tt.do {
				do(s)
			}
			if got := summary.Sink(s, noon); got != tt.want {
				t.Errorf("state = %q, want %q", got, tt.want)
			}
		})
	}
}
