// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/pipeline/condition"
)

// judgement is the result of the last permission check.
type judgement struct {
	generation int64
	// lost describes the permissions that the user lacks.
	lost string
}

// heldBack returns why the pipeline must not run. It returns an error if that could not be determined.
func (t *turn) heldBack(ctx context.Context) (condition.Why, error) {
	switch {
	case t.object.DeletionTimestamp != nil:
		return condition.Why{Reason: v1alpha1.ReasonProgressing, Message: "The pipeline is being deleted"}, nil
	case t.object.Spec.Suspend:
		return condition.Why{
			Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is set; when it is lifted, what differs then is found and sent",
		}, nil
	case syncpolicy.Of(t.informers.Configbutler().V1alpha1().SyncPolicies().Lister()).Suspend.Pipelines:
		return condition.Why{
			Reason: v1alpha1.ReasonPipelinesSuspended, Message: "pipelines are switched off by SyncPolicy " + v1alpha1.SyncPolicyName,
		}, nil
	}
	return t.permitted(ctx)
}

// permitted checks the permissions of the user who last edited the pipeline. If the check fails, the last result for the same generation
// stays valid; without one the pipeline is blocked.
func (t *turn) permitted(ctx context.Context) (condition.Why, error) {
	who := access.Sending(t.object)
	permissions, _ := access.OfPipeline(t.config.Resolver, t.object)
	lost, err := t.shared.Access.Check(ctx, who, permissions)
	switch {
	case err == nil:
		t.judged = &judgement{generation: t.object.Generation, lost: lost}
	case t.judged == nil || t.judged.generation != t.object.Generation:
		return condition.Why{
			Reason: v1alpha1.ReasonProgressing, Message: fmt.Sprintf("Whether %s may have it sent is being found out", who),
		}, fmt.Errorf("find out what %s may have sent: %w", who, err)
	default:
		klog.FromContext(ctx).Error(err, "Failed to check permissions of SyncPipeline, retrying",
			"pipeline", t.name, "retryAfter", access.DeniedTTL)
	}
	if t.judged.lost != "" {
		return condition.Why{Reason: v1alpha1.ReasonPermissionLost, Message: t.judged.lost}, nil
	}
	return condition.Why{}, nil
}
