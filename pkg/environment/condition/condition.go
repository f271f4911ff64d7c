// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition sets the conditions of an environment, for users, kubectl wait and kstatus. They are computed from its
// spec and status, and from Facts that the status does not contain.
//
// Ready is relative to the spec: an environment with manual sync is ready although a newer revision exists, and a pinned
// one is ready if it holds the pinned revision.
package condition

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Facts are inputs that the status does not contain.
type Facts struct {
	// Obstacle is why nothing can be synced.
	Obstacle Why
	// Held is why an automatic sync is held back that would start otherwise.
	Held Why
	// Running is the record of the run in progress, nil if there is none.
	Running *v1alpha1.SyncStatus
	// GivenUp is true if the server does not retry after status.lastError.
	GivenUp bool
	// Unplanned is true if status.changedWorkloads does not refer to status.latestRevision, or to what the environment
	// holds.
	Unplanned bool
	// Missing lists what workloads reference and the source lacks, such as ConfigMap app-config.
	Missing []string
	// Denied is why objects that may exist in the source are not copied.
	Denied Why
	// Remaining are sentences about objects that still exist while the environment is being deleted.
	Remaining []string
	// NotReady are sentences about workloads that are not ready.
	NotReady []string
}

// Why is a reason, as conditions have it, with a sentence for people. The zero value says that nothing is the matter.
type Why struct{ Reason, Message string }

func (w Why) ok() bool { return w.Reason == "" }

// Set sets the conditions of an environment for status.observedGeneration.
func Set(e *v1alpha1.Environment, facts Facts, now time.Time) {
	f := &findings{Environment: e, Facts: facts, now: now}
	s := setter{&e.Status, now}
	s.negative(v1alpha1.ConditionCatalogUpToDate, f.catalog(), Why{v1alpha1.ReasonUpToDate, f.upToDateMessage()})
	s.negative(v1alpha1.ConditionDependenciesUpToDate, f.dependencies(),
		Why{v1alpha1.ReasonUpToDate, "What workloads refer to is as in the source"})
	s.flag(v1alpha1.ConditionSyncing, f.syncing(), Why{v1alpha1.ReasonNotSyncing, "No sync is being done"})
	s.flag(v1alpha1.ConditionConflicted, f.conflicted(),
		Why{v1alpha1.ReasonNoConflicts, "No field was changed in the environment and in the catalog"})
	s.flag(v1alpha1.ConditionHeld, facts.Held, Why{v1alpha1.ReasonNotHeld, "No automatic sync is held back"})
	if !facts.Unplanned {
		s.missingObjects(f.missingObjects())
	}
	ready := f.ready()
	s.negative(v1alpha1.ConditionReady, ready,
		Why{v1alpha1.ReasonSucceeded, "The environment is what its spec asks for, and its workloads run"})
	s.present(v1alpha1.ConditionReconciling, ready, f.isReconciling(ready))
	s.present(v1alpha1.ConditionStalled, ready, f.isStalled(ready))
}

// findings computes the reasons of conditions.
type findings struct {
	*v1alpha1.Environment
	Facts
	now time.Time
}

// upToDateMessage describes an environment that is up to date.
func (f *findings) upToDateMessage() string {
	return fmt.Sprintf("The environment holds what the catalog offers with revision %d", f.Status.LatestRevision)
}

// setter sets conditions for the observed generation.
type setter struct {
	status *v1alpha1.EnvironmentStatus
	now    time.Time
}

func (s setter) put(kind string, state metav1.ConditionStatus, why Why) {
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: why.Reason, Message: printable.Message(why.Message),
		ObservedGeneration: s.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}

// flag sets a condition that is True if there is a reason, and False with otherwise.
func (s setter) flag(kind string, why, otherwise Why) {
	if why.ok() {
		s.put(kind, metav1.ConditionFalse, otherwise)
		return
	}
	s.put(kind, metav1.ConditionTrue, why)
}

// missingObjects sets the condition ObjectsMissing, which is Unknown if the server lacks the permission to check.
func (s setter) missingObjects(why Why) {
	if why.Reason == v1alpha1.ReasonUnreadable {
		s.put(v1alpha1.ConditionObjectsMissing, metav1.ConditionUnknown, why)
		return
	}
	s.flag(v1alpha1.ConditionObjectsMissing, why,
		Why{v1alpha1.ReasonNothingMissing, "The target has what workloads use, as far as the server does not copy it"})
}

// negative sets a condition that is True with fine if there is no reason, and Unknown while the reason is one that leaves
// it open.
func (s setter) negative(kind string, why, fine Why) {
	switch {
	case why.ok():
		s.put(kind, metav1.ConditionTrue, fine)
	case kind == v1alpha1.ConditionCatalogUpToDate && isUnknown(why.Reason):
		s.put(kind, metav1.ConditionUnknown, why)
	default:
		s.put(kind, metav1.ConditionFalse, why)
	}
}

// isUnknown reports whether a reason means that it is unknown if an environment holds what its catalog offers.
func isUnknown(reason string) bool {
	switch reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonCatalogNotReady:
		return true
	}
	return false
}

// present sets a condition to True, or removes it.
func (s setter) present(kind string, why Why, there bool) {
	if there {
		s.put(kind, metav1.ConditionTrue, why)
		return
	}
	meta.RemoveStatusCondition(&s.status.Conditions, kind)
}
