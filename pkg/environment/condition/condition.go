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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// Facts are inputs that the status does not contain.
type Facts struct {
	// Obstacle is why nothing can be synced.
	Obstacle conditions.Reason
	// Held is why an automatic sync is held back that would start otherwise, or that the catalog is another one.
	Held conditions.Reason
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
	Denied conditions.Reason
	// Remaining are sentences about objects that still exist while the environment is being deleted, or why they cannot be removed.
	Remaining []string
	// NotReady are sentences about workloads that are not ready.
	NotReady []string
}

// Set sets the conditions of an environment for status.observedGeneration.
func Set(e *v1alpha1.Environment, facts Facts, now time.Time) {
	f := &findings{Environment: e, Facts: facts, now: now}
	s := setter{conditions.For(&e.Status.Conditions, e.Status.ObservedGeneration, now)}
	s.upToDate(f.catalog(), conditions.Reason{Code: v1alpha1.ReasonUpToDate, Message: f.upToDateMessage()})
	s.Good(v1alpha1.ConditionDependenciesUpToDate, f.dependencies(),
		conditions.Reason{Code: v1alpha1.ReasonUpToDate, Message: "What workloads refer to is as in the source"})
	s.Problem(v1alpha1.ConditionSyncing, f.syncing(), conditions.Reason{Code: v1alpha1.ReasonNotSyncing, Message: "No sync is being done"})
	s.Problem(v1alpha1.ConditionConflicted, f.conflicted(),
		conditions.Reason{Code: v1alpha1.ReasonNoConflicts, Message: "No field was changed in the environment and in the catalog"})
	s.Problem(v1alpha1.ConditionHeld, facts.Held, conditions.Reason{Code: v1alpha1.ReasonNotHeld, Message: "No automatic sync is held back"})
	if !facts.Unplanned {
		s.missingObjects(f.missingObjects())
	}
	ready := f.ready()
	s.Good(v1alpha1.ConditionReady, ready,
		conditions.Reason{Code: v1alpha1.ReasonSucceeded, Message: "The environment is what its spec asks for, and its workloads run"})
	s.While(f.isReconciling(ready), v1alpha1.ConditionReconciling, ready)
	s.While(f.isStalled(ready), v1alpha1.ConditionStalled, ready)
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

// setter sets the conditions that are Unknown for some reasons.
type setter struct{ *conditions.Setter }

// missingObjects sets the condition ObjectsMissing, which is Unknown if the server lacks the permission to check.
func (s setter) missingObjects(missing conditions.Reason) {
	if missing.Code == v1alpha1.ReasonUnreadable {
		s.Set(v1alpha1.ConditionObjectsMissing, metav1.ConditionUnknown, missing)
		return
	}
	s.Problem(v1alpha1.ConditionObjectsMissing, missing, conditions.Reason{
		Code: v1alpha1.ReasonNothingMissing, Message: "The target has what workloads use, as far as the server does not copy it",
	})
}

// upToDate sets the condition CatalogUpToDate, which is Unknown while what the catalog offers is.
func (s setter) upToDate(outdated, fine conditions.Reason) {
	switch outdated.Code {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonCatalogNotReady:
		s.Set(v1alpha1.ConditionCatalogUpToDate, metav1.ConditionUnknown, outdated)
	default:
		s.Good(v1alpha1.ConditionCatalogUpToDate, outdated, fine)
	}
}
