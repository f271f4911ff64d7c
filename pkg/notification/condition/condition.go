// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition computes the conditions of a NotificationSink.
package condition

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// longestError is the length of status.lastError, in bytes.
	longestError = 512
	// failing is the number of consecutive failures from which a sink is not ready: one that has failed once or twice is expected to recover.
	failing = 3
)

// Cut returns an error as status.lastError shows it.
func Cut(message string) string { return summary.Cut(summary.Line(message), longestError) }

// Facts are inputs of the conditions besides the spec and the status.
type Facts struct {
	// Held is why nothing is sent.
	Held conditions.Reason
	// Failure is why the server failed, as a sentence; empty if it did not.
	Failure string
	// Reason is the reason of the last failed attempt; empty if it has no special one.
	Reason string
	// Window is for which window messages wait, empty if they do not.
	Window string
	// Rejected means that the receiver rejected the last message.
	Rejected bool
}

// Set computes the conditions of a sink, for status.observedGeneration.
func Set(sink *v1alpha1.NotificationSink, facts Facts, now time.Time) {
	status := &sink.Status
	set := conditions.For(&status.Conditions, status.ObservedGeneration, now)
	problem := facts.problem(status)
	switch {
	case !problem.IsZero():
		set.Set(v1alpha1.ConditionDelivering, metav1.ConditionFalse, problem)
	case status.Messages == 0:
		set.Set(v1alpha1.ConditionDelivering, metav1.ConditionUnknown,
			conditions.Reason{Code: v1alpha1.ReasonNothingSent, Message: "No message has been sent yet"})
	default:
		set.Set(v1alpha1.ConditionDelivering, metav1.ConditionTrue,
			conditions.Reason{Code: v1alpha1.ReasonDelivering, Message: "The receiver has accepted the last message"})
	}
	ready := problem
	switch ready.Code {
	case v1alpha1.ReasonDeliveryRetrying, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonWindowClosed:
		ready = conditions.Reason{} // Later messages are sent.
	}
	fine := conditions.Reason{Code: v1alpha1.ReasonSucceeded, Message: "Notifications are collected and sent"}
	set.Ready(ready, fine, ready.Code, isStalled(ready.Code))
}

// problem returns why messages are not delivered.
func (f Facts) problem(status *v1alpha1.NotificationSinkStatus) conditions.Reason {
	switch {
	case !f.Held.IsZero():
		return f.Held
	case f.Failure != "":
		return conditions.Progressing(f.Failure)
	case f.Window != "":
		return conditions.Reason{Code: v1alpha1.ReasonWindowClosed, Message: f.Window}
	case status.Failures == 0:
		return conditions.Reason{}
	case f.Rejected:
		return conditions.Reasonf(v1alpha1.ReasonDeliveryRejected, "The receiver rejected the last message, which is not sent again: %s", status.LastError)
	case f.Reason != "":
		return conditions.Reason{Code: f.Reason, Message: status.LastError}
	case status.Failures < failing:
		return conditions.Reasonf(v1alpha1.ReasonDeliveryRetrying, "The message is sent again: %s", status.LastError)
	}
	return conditions.Reason{
		Code:    v1alpha1.ReasonDeliveryFailed,
		Message: fmt.Sprintf("Failed %d times in a row, and is sent again: %s", status.Failures, status.LastError),
	}
}

// isStalled reports whether a user must act before messages are delivered.
func isStalled(code string) bool {
	switch code {
	case v1alpha1.ReasonPermissionLost, v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretInvalid, v1alpha1.ReasonSpecInvalid:
		return true
	}
	return false
}
