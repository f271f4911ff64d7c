// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/validation"
	"github.com/configbutler/slipstream/pkg/sentence"
)

// sync is the subresource sync of an Environment. The answer names the records of the run as soon as somebody has begun them;
// a dry run says what would be changed.
func (r *environmentRequests) sync() *requestREST[*configbutler.SyncRequest] {
	return &requestREST[*configbutler.SyncRequest]{
		newRequest: func() *configbutler.SyncRequest { return &configbutler.SyncRequest{} },
		judge:      r.judgeSync, carryOut: r.carryOutSync,
	}
}

// judgeSync says why there is no such sync, or why it is not the one that the user has seen.
func (r *environmentRequests) judgeSync(ctx context.Context, name string, request *configbutler.SyncRequest) error {
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

func (r *environmentRequests) carryOutSync(ctx context.Context, name string, request *configbutler.SyncRequest, dryRun []string) error {
	pending, err := r.newRequest(ctx, configbutler.EnvironmentRequestSync)
	if err != nil {
		return err
	}
	pending.Sync = request.Spec.DeepCopy()
	environment, err := r.note(ctx, name, dryRun, pending, func(stored *configbutler.Environment) error {
		return r.expectDependencySync(ctx, stored, request.Spec.ExpectedDependencySync)
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.SyncRequestStatus{RequestOutcome: configbutler.RequestOutcome{Accepted: true}}
	if dryrun.IsDryRun(dryRun) {
		request.Status.Message = fmt.Sprintf("Would sync %s (dry run)", wantedOf(&request.Spec))
		request.Status.Plan, err = r.plans.rehearse(ctx, environment, &request.Spec)
		return err
	}
	r.answerSync(ctx, environment, &pending, &request.Status.RequestOutcome)
	return nil
}

// answerSync waits a while until a request has been taken up, and says in which records.
func (r *environmentRequests) answerSync(
	ctx context.Context, noted *configbutler.Environment, request *configbutler.PendingEnvironmentRequest, answer *configbutler.RequestOutcome,
) {
	taken := r.awaitTaken(ctx, noted, request.ID)
	if taken == nil {
		answer.Message = waiting(noted, request.ID)
		_, name := r.recordOf(ctx, noted, v1alpha1.SyncTypeEnvironment, request.ID)
		if name != "" && request.Sync.Action != configbutler.SyncActionCluster {
			answer.Message += fmt.Sprintf("; then SyncStatus %s tells of it", name)
		}
		return
	}
	records := r.recordsOfSync(ctx, noted, request)
	answer.Message = "The request is taken up"
	tell(answer, records...)
	if len(records) == 0 {
		answer.Message = fmt.Sprintf("Nothing is recorded of the request; Environment %s says: %s", taken.Name, environmentSentence(taken))
	}
}

// recordsOfSync are the records of a run that was asked for: the one of workloads, and the one of what they refer to, which may
// have been there before.
func (r *environmentRequests) recordsOfSync(
	ctx context.Context, noted *configbutler.Environment, request *configbutler.PendingEnvironmentRequest,
) []*v1alpha1.SyncStatus {
	var records []*v1alpha1.SyncStatus
	if request.Sync.Action != configbutler.SyncActionCluster {
		if record, _ := r.recordOf(ctx, noted, v1alpha1.SyncTypeEnvironment, request.ID); record != nil {
			records = append(records, record)
		}
	}
	if request.Sync.Action == configbutler.SyncActionCatalog {
		return records
	}
	record, _ := r.recordOf(ctx, noted, v1alpha1.SyncTypeDependency, request.ID)
	if open := noted.Status.LatestDependencySync; record == nil && open != "" {
		if found, err := recordCalled(ctx, r.records, open); err == nil {
			record = found
		}
	}
	if record != nil {
		records = append(records, record)
	}
	return records
}

// wantedOf says what a request is to sync.
func wantedOf(spec *configbutler.SyncRequestSpec) string {
	what := map[configbutler.SyncAction]string{
		configbutler.SyncActionAll:     "workloads and what they refer to",
		configbutler.SyncActionCatalog: "workloads with what they refer to",
		configbutler.SyncActionCluster: "what workloads refer to",
	}[spec.Action]
	if len(spec.Workloads) == 0 {
		return what
	}
	return fmt.Sprintf("%s, of %s only", what, sentence.Count(len(spec.Workloads), "workload"))
}
