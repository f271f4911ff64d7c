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

// taken are the verbs that whoever has a custom resource written needs. An update is a server-side apply, which takes two.
var taken = map[plan.Verb][]string{
	plan.Create: {"create"},
	plan.Update: {"create", "patch"},
	plan.Delete: {"delete"},
}

// forbidden returns a failure for each custom resource that the requester may not write as steps do. Whoever writes an environment, or
// has it synced, is asked about the kinds that spec.include names by then. What is included no longer, and what an earlier revision
// brings back, may be of others. About the Gateway API, nobody is asked before: a cluster, or a source, may not have it.
func (r *running) forbidden(ctx context.Context, steps []plan.Step) ([]v1alpha1.ObjectFailure, error) {
	var failures []v1alpha1.ObjectFailure
	for _, step := range steps {
		if !plan.IsCustomResource(step.GroupKind) {
			continue
		}
		mapping, err := r.StateReader.Mapper.RESTMapping(step.GroupKind)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", step.Key, err)
		}
		permission := access.OfWriting(r.Environment, mapping.Resource.GroupResource(), taken[step.Verb]...)
		lost, err := r.StateReader.Rights.Check(ctx, *r.Requester, []access.Permission{permission})
		if err != nil {
			return nil, fmt.Errorf("find out whether %s may %s: %w", r.Requester, permission, err)
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
