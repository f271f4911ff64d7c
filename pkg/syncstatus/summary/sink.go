// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Sink returns the state of a NotificationSink at a time: what prevents it from sending, or else a rejected or failed message, or else what
// waits, or else whether it has sent anything.
func Sink(s *v1alpha1.NotificationSink, now time.Time) string {
	status := &s.Status
	switch {
	case s.DeletionTimestamp != nil:
		return "Deleting"
	case s.Spec.Suspend:
		return "Suspended"
	case status.ObservedGeneration == 0:
		return "Not looked at yet"
	}
	for _, sentence := range []string{unreadySink(status), rejectedMessage(status), failedMessage(status, now), heldMessages(status)} {
		if sentence != "" {
			return sentence
		}
	}
	switch {
	case s.Generation != status.ObservedGeneration:
		return "Taking over a change of the spec"
	case status.Pending > 0:
		return collecting(status, now)
	case status.Messages == 0:
		return "Nothing sent yet"
	}
	return "Delivering"
}

// unreadySink returns why a sink cannot send at all. It is empty if it can.
func unreadySink(status *v1alpha1.NotificationSinkStatus) string {
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	switch ready.Reason {
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonNotificationsSuspended:
		return With(holding(status), ready.Message)
	case v1alpha1.ReasonPermissionLost:
		return With("Not sent", ready.Message)
	case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretInvalid, v1alpha1.ReasonProgressing:
		return Line(ready.Message)
	}
	return ""
}

// failedMessage returns the error of the last attempt, and when the message is sent again.
func failedMessage(status *v1alpha1.NotificationSinkStatus, now time.Time) string {
	switch {
	case status.Failures == 0:
		return ""
	case status.Failures == 1:
		return With("Failed once", status.LastError) + nextMessage("next attempt", status, now)
	}
	return With("Failed "+Count(int(status.Failures), "time"), status.LastError) + nextMessage("next attempt", status, now)
}

// rejectedMessage returns why the receiver rejected the last message. It is empty if it did not.
func rejectedMessage(status *v1alpha1.NotificationSinkStatus) string {
	delivering := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDelivering)
	if delivering == nil || delivering.Reason != v1alpha1.ReasonDeliveryRejected {
		return ""
	}
	return With("Rejected", status.LastError)
}

// heldMessages returns the window that keeps notifications from being sent. It is empty if none does.
func heldMessages(status *v1alpha1.NotificationSinkStatus) string {
	for _, condition := range status.Conditions {
		if condition.Reason == v1alpha1.ReasonWindowClosed && status.Pending > 0 {
			return With(holding(status), condition.Message)
		}
	}
	return ""
}

func holding(status *v1alpha1.NotificationSinkStatus) string {
	if status.Pending == 0 {
		return "Held"
	}
	return "Holding " + grouped(status.Pending)
}

// collecting returns how many notifications wait for the next message, and when it is sent.
func collecting(status *v1alpha1.NotificationSinkStatus, now time.Time) string {
	return grouped(status.Pending) + " waiting" + nextMessage("sent", status, now)
}

// nextMessage returns a clause about the next attempt. It is empty if the time has passed or is unknown.
func nextMessage(what string, status *v1alpha1.NotificationSinkStatus, now time.Time) string {
	if next := status.NextAttemptTime; next != nil && next.After(now) {
		return ", " + what + " in " + duration.HumanDuration(next.Sub(now).Round(time.Second))
	}
	return ""
}
