// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition computes the conditions of a SyncPipeline.
package condition

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// Facts are inputs of the conditions besides the spec and the status.
type Facts struct {
	// Held is why nothing is watched and sent.
	Held conditions.Reason
	// Failure is the error of the last reconcile, as a sentence.
	Failure string
	// Listed reports whether everything that the pipeline selects was listed.
	Listed bool
	// WatchFailures describes the types that cannot be listed or watched, in sentences.
	WatchFailures []string
	// GivenUp are the sinks that are not retried automatically.
	GivenUp map[string]bool
}

// Set computes the conditions of a pipeline, for status.observedGeneration.
func Set(p *v1alpha1.SyncPipeline, facts Facts, now time.Time) {
	set := conditions.For(&p.Status.Conditions, p.Status.ObservedGeneration, now)
	problem := facts.Held
	if problem.IsZero() {
		problem = sinkProblem(p, facts.GivenUp)
	}
	fine := conditions.Reason{
		Code: v1alpha1.ReasonSucceeded, Message: "Everything that the pipeline selects is seen, and every sink takes what it is sent",
	}
	if unsent := unsentTo(p); problem.IsZero() && len(unsent) > 0 {
		nothing := conditions.Reason{Code: v1alpha1.ReasonNothingSent, Message: "Nothing has been sent yet to " + strings.Join(unsent, ", ")}
		set.Set(v1alpha1.ConditionSinksDelivering, metav1.ConditionUnknown, nothing)
		fine.Message = "Everything that the pipeline selects is seen. " + nothing.Message
	} else {
		set.Good(v1alpha1.ConditionSinksDelivering, problem,
			conditions.Reason{Code: v1alpha1.ReasonDelivering, Message: deliveringMessage(len(p.Spec.Sinks))})
	}
	ready := facts.readyProblem(problem)
	set.Ready(ready, fine, ready.Code, isStalled(ready.Code))
}

// unsentTo returns the sinks to which nothing was sent yet.
func unsentTo(p *v1alpha1.SyncPipeline) []string {
	var unsent []string
	for _, sink := range p.Status.Sinks {
		if sink.LastAnswer == "" && sink.Delivered == 0 {
			unsent = append(unsent, sink.Name)
		}
	}
	return unsent
}

// deliveringMessage returns the message when all sinks accept what they are sent.
func deliveringMessage(sinks int) string {
	if sinks == 1 {
		return "The sink takes what it is sent"
	}
	return fmt.Sprintf("All %d sinks take what they are sent", sinks)
}

// readyProblem returns why a sink does not have the current state and will not have it soon. sinks is the problem of the sinks: one that
// has failed once or twice is expected to recover.
func (f Facts) readyProblem(sinks conditions.Reason) conditions.Reason {
	switch {
	case !f.Held.IsZero():
		return f.Held
	case f.Failure != "":
		return conditions.Progressing(f.Failure)
	case len(f.WatchFailures) > 0:
		return conditions.Reason{Code: v1alpha1.ReasonWatchFailed, Message: strings.Join(f.WatchFailures, "; ")}
	case !sinks.IsZero() && sinks.Code != v1alpha1.ReasonDeliveryRetrying:
		return sinks
	case !f.Listed:
		return conditions.Progressing("What the pipeline selects is being listed")
	}
	return conditions.Reason{}
}

// isStalled reports whether a user must act before the pipeline can be ready. A suspended pipeline is not stalled.
func isStalled(code string) bool {
	switch code {
	case v1alpha1.ReasonPermissionLost, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonDeliveryGivenUp:
		return true
	}
	return false
}
