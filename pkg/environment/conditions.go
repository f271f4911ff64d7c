// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/environment/condition"
)

// report sets the conditions. begun is the record that is about to start, nil if there is none.
func (r *reconciliation) report(held conditions.Reason, begun *v1alpha1.SyncStatus) {
	// A failure without attempts left is not retried until a user requests it.
	last := r.state.records.lastFailed()
	facts := condition.Facts{
		Obstacle: r.state.obstacle, Held: held, Running: begun,
		GivenUp:   last != nil && last.Status.State == v1alpha1.SyncStateManualIntervention,
		Unplanned: r.state.offer == nil || r.state.offer.failure != nil, Denied: r.consent(),
	}
	e := r.state.environment
	if begun == nil && r.state.syncing {
		facts.Running = r.state.records.in(v1alpha1.SyncStateInProgress)
	}
	if r.state.obstacle.IsZero() && e.Status.AppliedRevision > 0 && !r.environments.caches.hasTarget(e) {
		facts.Obstacle = conditions.Reason{Code: v1alpha1.ReasonTargetNotFound,
			Message: fmt.Sprintf("The namespace %s is gone; a sync makes it anew", e.Spec.TargetNamespace)}
	}
	for _, missing := range r.environments.runner.Index.Missing(nameOf(e)) {
		facts.Missing = append(facts.Missing, fmt.Sprintf("%s %s", missing.Type, missing.Name))
	}
	e.Status.WorkloadsReady, facts.NotReady = r.workloads()
	condition.Set(e, facts, r.state.now)
}

// workloads returns how many workloads are ready, and why others are not. While that is unknown, it returns the last known numbers.
func (r *reconciliation) workloads() (*v1alpha1.WorkloadsReady, []string) {
	if r.state.environment.Status.AppliedRevision == 0 {
		return nil, nil
	}
	ready, troubles := r.environments.readiness.Of(r.state.environment)
	if ready == nil {
		return r.state.environment.Status.WorkloadsReady, troubles
	}
	return ready, troubles
}
