// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// pipelineSync is the subresource sync of a SyncPipeline. It adds the request to the status of the pipeline, from where
// the current or next leader processes it, and waits for a while until the run has finished.
type pipelineSync struct {
	// pipelines updates the status of SyncPipelines, policies reads the SyncPolicy.
	pipelines   *genericregistry.Store
	policies    rest.Getter
	clock       clock.PassiveClock
	waitTimeout time.Duration
}

func (s *pipelineSync) endpoint() *requestREST[*configbutler.PipelineSync] {
	return &requestREST[*configbutler.PipelineSync]{
		newRequest:    func() *configbutler.PipelineSync { return &configbutler.PipelineSync{} },
		clusterScoped: true,
		validate:      s.validate, execute: s.execute,
	}
}

// validate rejects a request that is invalid regardless of the pipeline's state.
func (s *pipelineSync) validate(ctx context.Context, name string, request *configbutler.PipelineSync) error {
	if err := invalid("PipelineSync", name, validation.ValidatePipelineSync(request, name)); err != nil {
		return err
	}
	pipeline, err := read[*configbutler.SyncPipeline](ctx, s.pipelines, name)
	if err != nil {
		return err
	}
	return invalid("PipelineSync", name, validation.ValidatePipelineSyncSource(request, &pipeline.Spec))
}

// execute persists a request and waits for its outcome.
func (s *pipelineSync) execute(ctx context.Context, name string, request *configbutler.PipelineSync, dryRun []string) error {
	actor, err := requester(ctx)
	if err != nil {
		return err
	}
	if err := s.checkSuspended(ctx, name); err != nil {
		return err
	}
	pending := configbutler.PendingPipelineRequest{
		ID: string(uuid.NewUUID()), Actor: actor, Time: metav1.NewTime(s.clock.Now().Truncate(time.Second)),
		Scope: request.Spec.Scope, Full: request.Spec.Full,
	}
	noted, err := change(ctx, s.pipelines, name, dryRun, func(stored *configbutler.SyncPipeline) error {
		return addRequest(stored, pending)
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.PipelineSyncStatus{Accepted: true}
	if dryrun.IsDryRun(dryRun) {
		request.Status.Message = fmt.Sprintf("Would send %s (dry run)", pipelineSyncScope(&request.Spec))
		return nil
	}
	request.Status.ID = pending.ID
	s.answer(ctx, noted, &request.Status)
	return nil
}

// checkSuspended returns an error if the SyncPolicy suspends all pipelines.
func (s *pipelineSync) checkSuspended(ctx context.Context, name string) error {
	policy, err := read[*configbutler.SyncPolicy](ctx, s.policies, configbutler.SyncPolicyName)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the SyncPolicy: %w", err)
	case policy.Spec.Suspend.Pipelines:
		return refused("syncpipelines", name, "SyncPolicy default has all pipelines switched off, so nothing is sent; to switch them on: "+
			`kubectl patch syncpolicy default --type=merge -p '{"spec":{"suspend":{"pipelines":false}}}'`)
	}
	return nil
}

// addRequest adds a request to the pending ones of a pipeline.
func addRequest(pipeline *configbutler.SyncPipeline, request configbutler.PendingPipelineRequest) error {
	switch n := len(pipeline.Status.PendingRequests); {
	case pipeline.DeletionTimestamp != nil:
		return refused("syncpipelines", pipeline.Name, "it is being deleted")
	case pipeline.Spec.Suspend:
		return refused("syncpipelines", pipeline.Name,
			fmt.Sprintf("spec.suspend is set, so nothing is sent; what has changed is sent when it is lifted: "+
				`kubectl patch syncpipeline %s --type=merge -p '{"spec":{"suspend":false}}'`, pipeline.Name))
	case n >= v1alpha1.MaxPendingPipelineRequests:
		return apierrors.NewTooManyRequests(fmt.Sprintf("%d requests wait for this pipeline; its conditions say why", n), requestRetrySeconds)
	}
	pipeline.Status.PendingRequests = append(pipeline.Status.PendingRequests, request)
	return nil
}

// answer waits for a while until the run of a request has finished, and writes its outcome into the answer. The watch
// starts at the version with the request, so no event is missed.
func (s *pipelineSync) answer(ctx context.Context, noted *configbutler.SyncPipeline, answer *configbutler.PipelineSyncStatus) {
	answer.Message = fmt.Sprintf("The request is accepted; status.pendingRequests of SyncPipeline %s has it under the id %s until its run "+
		"has finished",
		noted.Name, answer.ID)
	await(ctx, s.waitTimeout, s.pipelines, noted.Name, noted.ResourceVersion, func(now *configbutler.SyncPipeline) bool {
		return answered(now, answer, s.clock.Now())
	})
}

// answered writes the progress of a request into an answer, and reports whether the request is processed.
func answered(pipeline *configbutler.SyncPipeline, answer *configbutler.PipelineSyncStatus, now time.Time) bool {
	status := &pipeline.Status
	waits := slices.ContainsFunc(status.PendingRequests, func(p configbutler.PendingPipelineRequest) bool { return p.ID == answer.ID })
	switch {
	case status.LastRun != nil && status.LastRun.ID == answer.ID:
		answer.Run = status.LastRun.DeepCopy()
		answer.Message = runSummary(answer.Run)
		return true
	case !waits:
		answer.Message = fmt.Sprintf("The request is finished, and SyncPipeline %s no longer describes its run", pipeline.Name)
		return true
	case status.CurrentRun != nil && status.CurrentRun.ID == answer.ID:
		answer.Run = status.CurrentRun.DeepCopy()
		answer.Message = fmt.Sprintf("The run continues; status.currentRun of SyncPipeline %s shows how far it is, now: %s",
			pipeline.Name, pipelineState(pipeline, now))
	}
	return false
}

// runSummary summarizes a run: what was sent to which sinks, and the results.
func runSummary(run *configbutler.PipelineRun) string {
	out := &v1alpha1.PipelineRun{}
	if err := v1alpha1.Convert_configbutler_PipelineRun_To_v1alpha1_PipelineRun(run, out, nil); err != nil {
		return "" // what is stored has been converted before
	}
	return summary.PipelineRun(out)
}

// pipelineSyncScope returns what a request sends, for messages.
func pipelineSyncScope(spec *configbutler.PipelineSyncSpec) string {
	what := map[configbutler.PipelineScope]string{
		configbutler.PipelineScopeAll:         "CustomResourceDefinitions and objects",
		configbutler.PipelineScopeDefinitions: "CustomResourceDefinitions",
		configbutler.PipelineScopeInstances:   "objects",
	}[spec.Scope]
	if spec.Full {
		return "all " + what
	}
	return what + " that some sink does not know as they are"
}
