// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// sync is the subresource sync of an Environment. The response names the records of the run once it has started. A dry
// run returns the plan.
func (r *environmentRequests) sync() *requestREST[*configbutler.SyncRequest] {
	return &requestREST[*configbutler.SyncRequest]{
		newRequest: func() *configbutler.SyncRequest { return &configbutler.SyncRequest{} },
		validate:   r.validateSync, execute: r.executeSync,
	}
}

// validateSync rejects an impossible sync, and one based on outdated records.
func (r *environmentRequests) validateSync(ctx context.Context, name string, request *configbutler.SyncRequest) error {
	if err := invalid("SyncRequest", name, validation.ValidateSyncRequest(request, name)); err != nil {
		return err
	}
	environment, err := read[*configbutler.Environment](ctx, r.environments, name)
	if err != nil {
		return err
	}
	catalog, err := r.catalogOf(ctx, environment)
	if err != nil {
		return err
	}
	if err := invalid("SyncRequest", name, validation.ValidateSyncRequestWorkloads(request, environment, catalog)); err != nil {
		return err
	}
	if err := r.expectCatalogSync(ctx, environment, catalog, request.Spec.ExpectedCatalogSync); err != nil {
		return err
	}
	return r.expectDependencySync(ctx, environment, request.Spec.ExpectedDependencySync)
}

func (r *environmentRequests) executeSync(ctx context.Context, name string, request *configbutler.SyncRequest, dryRun []string) error {
	pending, err := r.newRequest(ctx, configbutler.EnvironmentRequestSync)
	if err != nil {
		return err
	}
	pending.Sync = request.Spec.DeepCopy()
	var prompts map[string]time.Time
	environment, err := r.addRequest(ctx, name, dryRun, pending, func(stored *configbutler.Environment) error {
		prompts = r.moves.prompts.since(ctx, stored)
		return r.expectDependencySync(ctx, stored, request.Spec.ExpectedDependencySync)
	})
	if err != nil {
		return err
	}
	if !dryrun.IsDryRun(dryRun) {
		measureDecision(prompts, takenBy(&pending), decisionTaken, pending.Time.Time)
	}
	request.Status = configbutler.SyncRequestStatus{RequestOutcome: configbutler.RequestOutcome{Accepted: true}}
	if dryrun.IsDryRun(dryRun) {
		request.Status.Message = fmt.Sprintf("Would sync %s (dry run)", syncScope(&request.Spec))
		request.Status.Plan, err = r.plans.rehearse(ctx, environment, &request.Spec)
		return err
	}
	request.Status.ID = pending.ID
	r.answerSync(ctx, environment, &pending, &request.Status.RequestOutcome)
	return nil
}

// answerSync waits for a while until a sync has started, and writes its records into the answer.
func (r *environmentRequests) answerSync(
	ctx context.Context, noted *configbutler.Environment, request *configbutler.PendingEnvironmentRequest, answer *configbutler.RequestOutcome,
) {
	var records []*v1alpha1.SyncStatus
	taken := r.awaitStart(ctx, noted, request.ID, func() bool {
		records = r.recordsOfSync(ctx, noted, request)
		return len(records) > 0
	})
	if taken == nil {
		answer.Message = waiting(noted, request.ID)
		_, name := r.recordOf(ctx, noted, v1alpha1.SyncTypeEnvironment, request.ID)
		if name != "" && request.Sync.Action != configbutler.SyncActionCluster {
			answer.Message += fmt.Sprintf("; then SyncStatus %s describes it", name)
		}
		return
	}
	answer.Message = "The request is being processed"
	if records = r.recordsOfSync(ctx, noted, request); len(records) == 0 {
		answer.Message = fmt.Sprintf("Nothing is recorded of the request; Environment %s says: %s", taken.Name, environmentState(taken))
	}
	addRecords(answer, records...)
}

// recordsOfSync returns the records of a requested run once they exist. An existing dependency record can become that
// of the run, and a run of everything resolves it.
func (r *environmentRequests) recordsOfSync(
	ctx context.Context, noted *configbutler.Environment, request *configbutler.PendingEnvironmentRequest,
) []*v1alpha1.SyncStatus {
	refreshes := request.Sync.Action == configbutler.SyncActionCluster
	of := v1alpha1.SyncTypeEnvironment
	if refreshes {
		of = v1alpha1.SyncTypeDependency
	}
	var records []*v1alpha1.SyncStatus
	if record, _ := r.recordOf(ctx, noted, of, request.ID); record != nil {
		records = append(records, record)
	}
	open, err := getRecord(ctx, r.records, noted.Status.LatestDependencySync)
	if err != nil {
		return records // There is none, or it has been deleted.
	}
	begun := len(records) > 0 && request.Sync.Action == configbutler.SyncActionAll && len(request.Sync.Workloads) == 0
	if begun || refreshes && open.Annotations[v1alpha1.AnnotationRequest] == request.ID {
		records = append(records, open)
	}
	return records
}

// syncScope returns what a request syncs, for messages.
func syncScope(spec *configbutler.SyncRequestSpec) string {
	what := map[configbutler.SyncAction]string{
		configbutler.SyncActionAll:     "workloads and what they refer to",
		configbutler.SyncActionCatalog: "workloads with what they refer to",
		configbutler.SyncActionCluster: "what workloads refer to",
	}[spec.Action]
	if len(spec.Workloads) == 0 {
		return what
	}
	return fmt.Sprintf("%s, of %s only", what, summary.Count(len(spec.Workloads), "workload"))
}
