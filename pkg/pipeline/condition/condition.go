// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition computes the conditions of a SyncPipeline.
package condition

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Facts are inputs of the conditions besides the spec and the status.
type Facts struct {
	// Held is why nothing is watched and sent.
	Held Why
	// Trouble is the error of the last reconcile, as a sentence.
	Trouble string
	// Listed reports whether everything that the pipeline selects was listed.
	Listed bool
	// Unseen describes the types that cannot be listed or watched, in sentences.
	Unseen []string
	// GivenUp are the sinks that are not retried automatically.
	GivenUp map[string]bool
}

// Why is the reason and the message of a condition. The zero value means that there is no problem.
type Why struct{ Reason, Message string }

func (w Why) ok() bool { return w.Reason == "" }

// Set computes the conditions of a pipeline, for status.observedGeneration.
func Set(p *v1alpha1.SyncPipeline, facts Facts, now time.Time) {
	s := set{&p.Status, now}
	delivering := facts.Held
	if delivering.ok() {
		delivering = sinks(p, facts.GivenUp)
	}
	ready := facts.ready(delivering)
	fine := Why{v1alpha1.ReasonSucceeded, "Everything that the pipeline selects is seen, and every sink takes what it is sent"}
	switch unsent := unsentTo(p); {
	case delivering.ok() && len(unsent) > 0:
		nothing := Why{v1alpha1.ReasonNothingSent, "Nothing has been sent yet to " + strings.Join(unsent, ", ")}
		s.put(v1alpha1.ConditionSinksDelivering, metav1.ConditionUnknown, nothing)
		fine.Message = "Everything that the pipeline selects is seen. " + nothing.Message
	default:
		s.good(v1alpha1.ConditionSinksDelivering, delivering, Why{v1alpha1.ReasonDelivering, taking(len(p.Spec.Sinks))})
	}
	s.good(v1alpha1.ConditionReady, ready, fine)
	s.only(v1alpha1.ConditionReconciling, ready, ready.Reason == v1alpha1.ReasonProgressing)
	s.only(v1alpha1.ConditionStalled, ready, stalls(ready.Reason))
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

// taking returns the message when all sinks accept what they are sent.
func taking(sinks int) string {
	if sinks == 1 {
		return "The sink takes what it is sent"
	}
	return fmt.Sprintf("All %d sinks take what they are sent", sinks)
}

// ready returns why a sink does not have the current state and will not have it soon. A sink that has failed once or twice is expected to
// recover.
func (f Facts) ready(delivering Why) Why {
	switch {
	case !f.Held.ok():
		return f.Held
	case f.Trouble != "":
		return Why{v1alpha1.ReasonProgressing, f.Trouble}
	case len(f.Unseen) > 0:
		return Why{v1alpha1.ReasonWatchFailed, strings.Join(f.Unseen, "; ")}
	case !delivering.ok() && delivering.Reason != v1alpha1.ReasonDeliveryRetrying:
		return delivering
	case !f.Listed:
		return Why{v1alpha1.ReasonProgressing, "What the pipeline selects is being listed"}
	}
	return Why{}
}

// stalls reports whether a user must act before the pipeline can be ready. A suspended pipeline is not stalled.
func stalls(reason string) bool {
	switch reason {
	case v1alpha1.ReasonPermissionLost, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonDeliveryGivenUp:
		return true
	}
	return false
}

// set writes conditions for the observed generation.
type set struct {
	status *v1alpha1.SyncPipelineStatus
	now    time.Time
}

func (s set) put(kind string, state metav1.ConditionStatus, why Why) {
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: why.Reason, Message: printable.Message(why.Message),
		ObservedGeneration: s.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}

// good sets a condition that is true, with the reason fine, when there is no problem.
func (s set) good(kind string, why, fine Why) {
	if why.ok() {
		s.put(kind, metav1.ConditionTrue, fine)
		return
	}
	s.put(kind, metav1.ConditionFalse, why)
}

// only sets a condition while it is true, and removes it otherwise.
func (s set) only(kind string, why Why, there bool) {
	if there {
		s.put(kind, metav1.ConditionTrue, why)
		return
	}
	meta.RemoveStatusCondition(&s.status.Conditions, kind)
}
