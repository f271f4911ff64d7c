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

// maxPreviews is how many previews are planned at the same time. Each holds the whole state of its environment in memory.
const maxPreviews = 4

// Previewer returns what a sync would change. It is safe for concurrent use.
type Previewer struct {
	runner Runner
	slots  *semaphore.Weighted
}

// NewPreviewer returns a Previewer that plans with runner.
func NewPreviewer(runner Runner) *Previewer {
	return &Previewer{runner: runner, slots: semaphore.NewWeighted(maxPreviews)}
}

// Diff returns what the action All would change. Of Secrets it contains only the keys.
func (p *Previewer) Diff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}, ModePlan, plan.HideSecrets)
}

// SecretDiff is Diff with the content of Secrets.
func (p *Previewer) SecretDiff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}, ModePlan, plan.ShowSecrets)
}

// Rehearse returns what a request would change, and which of these changes the cluster would refuse. Of Secrets it contains only the
// keys.
func (p *Previewer) Rehearse(ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) (*v1alpha1.SyncPlan, error) {
	return p.show(ctx, e, request, ModeDryRun, plan.HideSecrets)
}

func (p *Previewer) show(
	ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec, mode Mode, values plan.Values,
) (*v1alpha1.SyncPlan, error) {
	if err := p.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other previews: %w", err)
	}
	defer p.slots.Release(1)
	planned := PreviewRequest(e, request)
	planned.Mode = mode
	result, err := p.runner.Run(ctx, planned)
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
	addProblems(shown, e, result)
	return shown, nil
}

// PreviewRequest returns the sync that is planned for a request. A pinned environment keeps its pinned revision, unless the request is
// forced.
func PreviewRequest(e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) Request {
	planned := Request{Environment: e, Action: request.Action, Only: request.Workloads, Force: request.Force}
	if pinned := e.Spec.PinnedRevision; pinned != nil && !request.Force && request.Action != v1alpha1.SyncActionCluster {
		planned.Revision = *pinned
	}
	return planned
}
