// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition answers how things are with an environment, as its conditions say it: for people, for kubectl wait and in the
// way of kstatus. They follow from its spec and status, and from what the status does not tell.
//
// Ready is about what the spec asks for: an environment that takes a new revision when somebody asks for it is ready also while
// there is one, and one that is pinned while it holds the revision it is pinned to.
package condition

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Facts are what the status does not tell.
type Facts struct {
	// Obstacle is why nothing can be synced.
	Obstacle Why
	// Held is why automatic syncs wait that would otherwise begin.
	Held Why
	// Running is the record of the run that is being done, nil if there is none.
	Running *v1alpha1.SyncStatus
	// GivenUp says that what status.lastError tells of is not tried again by itself.
	GivenUp bool
	// Unplanned says that status.changedWorkloads is not about status.latestRevision, or not about what the environment holds.
	Unplanned bool
	// Missing is what workloads refer to and the source lacks, such as ConfigMap app-config.
	Missing []string
	// Withheld is what of the source is not copied although it may be there.
	Withheld Why
	// Left are sentences about what an environment that is being deleted has written and that is still there.
	Left []string
	// NotReady are sentences about workloads that do not run as they should.
	NotReady []string
}

// Why is a reason, as conditions have it, with a sentence for people. The zero value says that nothing is the matter.
type Why struct{ Reason, Message string }

func (w Why) ok() bool { return w.Reason == "" }

// Set makes the conditions of an environment those of its spec and its status, which is about status.observedGeneration.
func Set(e *v1alpha1.Environment, facts Facts, now time.Time) {
	f := &findings{Environment: e, Facts: facts, now: now}
	s := set{&e.Status, now}
	s.good(v1alpha1.ConditionCatalogUpToDate, f.catalog(), Why{v1alpha1.ReasonUpToDate, f.holding()})
	s.good(v1alpha1.ConditionDependenciesUpToDate, f.dependencies(),
		Why{v1alpha1.ReasonUpToDate, "What workloads refer to is as in the source"})
	s.flag(v1alpha1.ConditionSyncing, f.syncing(), Why{v1alpha1.ReasonNotSyncing, "No sync is being done"})
	s.flag(v1alpha1.ConditionConflicted, f.conflicted(),
		Why{v1alpha1.ReasonNoConflicts, "No field was changed in the environment and in the catalog"})
	s.flag(v1alpha1.ConditionHeld, facts.Held, Why{v1alpha1.ReasonNotHeld, "No automatic sync is held back"})
	if !facts.Unplanned {
		s.lacking(f.lacking())
	}
	ready := f.ready()
	s.good(v1alpha1.ConditionReady, ready,
		Why{v1alpha1.ReasonSucceeded, "The environment is what its spec asks for, and its workloads run"})
	s.only(v1alpha1.ConditionReconciling, ready, f.goesOn(ready))
	s.only(v1alpha1.ConditionStalled, ready, f.stalls(ready))
}

// findings are all that conditions follow from.
type findings struct {
	*v1alpha1.Environment
	Facts
	now time.Time
}

// holding is what an environment holds that is up to date.
func (f *findings) holding() string {
	return fmt.Sprintf("The environment holds what the catalog offers with revision %d", f.Status.LatestRevision)
}

// set writes conditions that are about the observed generation.
type set struct {
	status *v1alpha1.EnvironmentStatus
	now    time.Time
}

func (s set) put(kind string, state metav1.ConditionStatus, why Why) {
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: why.Reason, Message: printable.Message(why.Message),
		ObservedGeneration: s.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}

// flag sets a condition that is true while something is the matter, and false with otherwise.
func (s set) flag(kind string, why, otherwise Why) {
	if why.ok() {
		s.put(kind, metav1.ConditionFalse, otherwise)
		return
	}
	s.put(kind, metav1.ConditionTrue, why)
}

// lacking sets the condition that the target lacks something, which is unknown where the server may not look.
func (s set) lacking(why Why) {
	if why.Reason == v1alpha1.ReasonUnreadable {
		s.put(v1alpha1.ConditionObjectsMissing, metav1.ConditionUnknown, why)
		return
	}
	s.flag(v1alpha1.ConditionObjectsMissing, why,
		Why{v1alpha1.ReasonNothingMissing, "The target has what workloads use, as far as the server does not copy it"})
}

// good sets a condition that is true with fine while nothing is the matter, and unknown while that is being found out.
func (s set) good(kind string, why, fine Why) {
	switch {
	case why.ok():
		s.put(kind, metav1.ConditionTrue, fine)
	case kind == v1alpha1.ConditionCatalogUpToDate && isUnknown(why.Reason):
		s.put(kind, metav1.ConditionUnknown, why)
	default:
		s.put(kind, metav1.ConditionFalse, why)
	}
}

// isUnknown says whether a reason is why it is not known if an environment holds what its catalog offers.
func isUnknown(reason string) bool {
	switch reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonCatalogNotReady:
		return true
	}
	return false
}

// only has a condition there while it is true.
func (s set) only(kind string, why Why, there bool) {
	if there {
		s.put(kind, metav1.ConditionTrue, why)
		return
	}
	meta.RemoveStatusCondition(&s.status.Conditions, kind)
}
