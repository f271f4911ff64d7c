// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// requiredVerbs are the verbs that a requester needs to have a custom resource written. A server-side apply requires two.
var requiredVerbs = map[plan.Verb][]string{
	plan.Create: {"create"},
	plan.Update: {"create", "patch"},
	plan.Delete: {"delete"},
}

// forbidden returns a failure for each custom resource that the requester is not allowed to write. Admission checks the kinds in
// spec.include when an environment is written or a sync is requested. Resources that are no longer included, or that an earlier
// revision contains, can be of other kinds; resources of the Gateway API are not checked before, because a cluster may not serve it.
func (r *syncRun) forbidden(ctx context.Context, steps []plan.Step) ([]v1alpha1.ObjectFailure, error) {
	var failures []v1alpha1.ObjectFailure
	for _, step := range steps {
		if !plan.IsCustomResource(step.GroupKind) {
			continue
		}
		mapping, err := r.syncer.StateReader.Mapper.RESTMapping(step.GroupKind)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", step.Key, err)
		}
		permission := access.OfWriting(r.request.Environment, mapping.Resource.GroupResource(), requiredVerbs[step.Verb]...)
		lost, err := r.syncer.StateReader.Rights.Check(ctx, *r.request.Requester, []access.Permission{permission})
		if err != nil {
			return nil, fmt.Errorf("find out whether %s may %s: %w", r.request.Requester, permission, err)
		}
		if lost != "" && plan.IsGatewayAPI(step.GroupKind) && step.Verb != plan.Delete {
			lost += ", or set spec.adapt.ingressHosts.type to Omit"
		}
		if lost != "" {
			failures = append(failures, v1alpha1.ObjectFailure{
				Type: step.Kind, Namespace: step.Namespace, Name: step.Name, Reason: v1alpha1.ReasonPermissionLost,
				Message: summary.Cut(fmt.Sprintf("Failed to %s %s '%s' of %s - %s", step.Verb, step.Kind, step.Name, step.Namespace, lost),
					v1alpha1.MaxFailureBytes),
			})
		}
	}
	return failures, nil
}
