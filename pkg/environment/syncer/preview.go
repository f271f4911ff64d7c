// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// atOnce is how many plans are made at the same time, for all who ask. Each holds everything that the environment is made of.
const atOnce = 4

// Previewer shows plans. It may be used concurrently.
type Previewer struct {
	// Runner makes the plans.
	Runner Runner
	slots  *semaphore.Weighted
}

// NewPreviewer returns a Previewer. Its Runner must be set before it is used.
func NewPreviewer() *Previewer { return &Previewer{slots: semaphore.NewWeighted(atOnce)} }

// Diff is what the action All would change. Of Secrets it has the names of what they hold.
func (p *Previewer) Diff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}, ModePlan, plan.HideSecrets)
}

// SecretDiff is Diff with what Secrets hold.
func (p *Previewer) SecretDiff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}, ModePlan, plan.ShowSecrets)
}

// Rehearse is what a request would change, and what of it the cluster would refuse. Of Secrets it has the names of what they
// hold.
func (p *Previewer) Rehearse(ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, request, ModeDryRun, plan.HideSecrets)
}

func (p *Previewer) show(
	ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec, mode Mode, values plan.Values,
) (*v1alpha1.SyncPlan, error) {
	if err := p.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait until others have been told what their environments would become: %w", err)
	}
	defer p.slots.Release(1)
	planned := PreviewRequest(e, request)
	planned.Mode = mode
	result, err := p.Runner.Run(ctx, planned)
	if err != nil {
		return nil, err
	}
	shown := &v1alpha1.SyncPlan{
		DependencySync: e.Status.LatestDependencySync, FromRevision: e.Status.AppliedRevision, Revision: result.Revision,
		Changes: result.Plan.Changes(values), Unchanged: result.Plan.Unchanged(), Warnings: result.Plan.Warnings,
	}
	if request.Action == v1alpha1.SyncActionCluster {
		shown.Revision = 0
	}
	tell(shown, e, result)
	return shown, nil
}

// PreviewRequest is what is planned for a request. An environment that is pinned gets the revision that it is pinned to, unless
// somebody forces another one.
func PreviewRequest(e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) Request {
	planned := Request{Environment: e, Action: request.Action, Only: request.Workloads, Force: request.Force}
	if pinned := e.Spec.PinnedRevision; pinned != nil && !request.Force && request.Action != v1alpha1.SyncActionCluster {
		planned.Revision = *pinned
	}
	return planned
}
