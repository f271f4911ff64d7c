// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/condition"
)

// report sets the conditions. begun is the record that is about to start, nil if there is none.
func (t *turning) report(held verdict, begun *v1alpha1.SyncStatus) {
	facts := condition.Facts{
		Obstacle: t.obstacle.why(), Held: held.why(), Running: begun, GivenUp: t.hasGivenUp(),
		Unplanned: t.offer == nil || t.offer.failure != nil, Denied: t.consent(),
	}
	e := t.environment
	if begun == nil && t.busy {
		facts.Running = t.inProgress()
	}
	if t.obstacle.ok() && e.Status.AppliedRevision > 0 && !t.hasTarget(e) {
		facts.Obstacle = condition.Why{Reason: v1alpha1.ReasonTargetNotFound,
			Message: fmt.Sprintf("The namespace %s is gone; a sync makes it anew", e.Spec.TargetNamespace)}
	}
	for _, missing := range t.config.Runner.Index.Missing(nameOf(e)) {
		facts.Missing = append(facts.Missing, fmt.Sprintf("%s %s", missing.Type, missing.Name))
	}
	e.Status.WorkloadsReady, facts.NotReady = t.workloads()
	condition.Set(e, facts, t.now)
}

// workloads returns how many workloads are ready, and why others are not. While that is unknown, it returns the last known numbers.
func (t *turning) workloads() (*v1alpha1.WorkloadsReady, []string) {
	if t.environment.Status.AppliedRevision == 0 {
		return nil, nil
	}
	ready, troubles := t.readiness.Of(t.environment)
	if ready == nil {
		return t.environment.Status.WorkloadsReady, troubles
	}
	return ready, troubles
}

// inProgress returns the record in progress, nil if there is none.
func (s *situation) inProgress() *v1alpha1.SyncStatus {
	for _, record := range s.records {
		if record.Status.State == v1alpha1.SyncStateInProgress {
			return record
		}
	}
	return nil
}

// hasGivenUp reports whether the last failure is not retried until a user requests it.
func (s *situation) hasGivenUp() bool {
	gave := false
	for _, record := range s.records {
		if failed(record) {
			gave = record.Status.State == v1alpha1.SyncStateManualIntervention
		}
	}
	return gave
}

// why converts a verdict for conditions.
func (v verdict) why() condition.Why { return condition.Why{Reason: v.reason, Message: v.message} }
