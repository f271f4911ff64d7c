// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// permissionCheck is the result of a permission check.
type permissionCheck struct {
	generation int64
	// types are those from which the pipeline selected, nil if they were unknown. Only these may be sent.
	types *watch.Snapshot
	// lost describes the permissions that the user lacks; empty if there are none.
	lost string
}

// holdReason returns why the pipeline must not run. It returns an error if that could not be determined.
func (r *reconciliation) holdReason(ctx context.Context) (conditions.Reason, error) {
	switch {
	case r.object.DeletionTimestamp != nil:
		return conditions.Progressing("The pipeline is being deleted"), nil
	case r.object.Spec.Suspend:
		return conditions.Reason{
			Code: v1alpha1.ReasonSuspended, Message: "spec.suspend is set; when it is lifted, what differs then is found and sent",
		}, nil
	case syncpolicy.Of(r.pipelines.informers.Configbutler().V1alpha1().SyncPolicies().Lister()).Suspend.Pipelines:
		return conditions.Reason{
			Code: v1alpha1.ReasonPipelinesSuspended, Message: "pipelines are switched off by SyncPolicy " + v1alpha1.SyncPolicyName,
		}, nil
	}
	return r.checkPermissions(ctx)
}

// checkPermissions checks the permissions of the user who last edited the pipeline. If the check fails, the last result for the same
// generation stays valid, for the types that existed then; without one the pipeline is held.
func (r *reconciliation) checkPermissions(ctx context.Context) (conditions.Reason, error) {
	p, user, types := r.pipeline, access.Sending(r.object), r.pipelines.shared.Types.Snapshot()
	permissions, _ := access.OfPipeline(r.pipelines.config.Resolver(types), r.object)
	lost, err := r.pipelines.shared.Access.Check(ctx, user, permissions)
	switch {
	case err == nil:
		p.permission = &permissionCheck{generation: r.object.Generation, types: types, lost: lost}
	case p.permission == nil || p.permission.generation != r.object.Generation:
		return conditions.Progressing(fmt.Sprintf("Whether %s may have it sent is being determined", user)),
			fmt.Errorf("find out what %s may have sent: %w", user, err)
	default:
		klog.FromContext(ctx).Error(err, "Failed to check permissions of SyncPipeline, retrying",
			"pipeline", p.name, "retryAfter", access.DeniedTTL)
	}
	if p.permission.lost != "" {
		return conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: p.permission.lost}, nil
	}
	return conditions.Reason{}, nil
}
