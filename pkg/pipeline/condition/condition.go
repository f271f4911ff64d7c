// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition answers how things are with a pipeline, as its conditions say it.
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

// Facts are what conditions follow from beside the spec and the status.
type Facts struct {
	// Held says why nothing is watched and sent.
	Held Why
	// Trouble is a sentence about what of the spec could not be brought about, and is tried again.
	Trouble string
	// Listed says that everything which the pipeline selects has been listed.
	Listed bool
	// Unseen are sentences about what is selected and cannot be listed or watched.
	Unseen []string
	// Resting are the sinks that are not tried again by themselves.
	Resting map[string]bool
}

// Why is a reason, as conditions have it, with a sentence for people. The zero value says that nothing is the matter.
type Why struct{ Reason, Message string }

func (w Why) ok() bool { return w.Reason == "" }

// Set makes the conditions of a pipeline those of its spec and its status, which is about status.observedGeneration.
func Set(p *v1alpha1.SyncPipeline, facts Facts, now time.Time) {
	s := set{&p.Status, now}
	delivering := facts.Held
	if delivering.ok() {
		delivering = sinks(p, facts.Resting)
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

// unsentTo returns the sinks to which nothing has been sent.
func unsentTo(p *v1alpha1.SyncPipeline) []string {
	var unsent []string
	for _, sink := range p.Status.Sinks {
		if sink.LastAnswer == "" && sink.Delivered == 0 {
			unsent = append(unsent, sink.Name)
		}
	}
	return unsent
}

// taking says that all sinks do.
func taking(sinks int) string {
	if sinks == 1 {
		return "The sink takes what it is sent"
	}
	return fmt.Sprintf("All %d sinks take what they are sent", sinks)
}

// ready says why not every sink knows, or is about to know, what there is. A sink that has failed once or twice is about to.
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

// stalls says whether somebody has to change something before the pipeline can be ready. Who has suspended it wants it so.
func stalls(reason string) bool {
	switch reason {
	case v1alpha1.ReasonPermissionLost, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonDeliveryGivenUp:
		return true
	}
	return false
}

// set writes conditions that are about the observed generation.
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

// good sets a condition that is true with fine while nothing is the matter.
func (s set) good(kind string, why, fine Why) {
	if why.ok() {
		s.put(kind, metav1.ConditionTrue, fine)
		return
	}
	s.put(kind, metav1.ConditionFalse, why)
}

// only has a condition there while it is true.
func (s set) only(kind string, why Why, there bool) {
	if there {
		s.put(kind, metav1.ConditionTrue, why)
		return
	}
	meta.RemoveStatusCondition(&s.status.Conditions, kind)
}
