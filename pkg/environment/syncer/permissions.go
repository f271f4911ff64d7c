// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// requiredVerbs are the verbs that a requester needs to have an object written. A server-side apply requires two.
var requiredVerbs = map[plan.Verb][]string{
	plan.Create: {"create"},
	plan.Update: {"create", "patch"},
	plan.Delete: {"delete"},
}

// permissionCheck checks whether the requester of a run may do what its plan does.
//
// Admission checks this when a sync is requested. It is checked again, without the cache, before each plan is applied: a request can wait
// for days, and meanwhile the requester can have lost the permissions, the namespace can have been deleted and created for other users, and
// the content of the catalog can have changed. A plan can also contain kinds that admission did not check: of an earlier revision, of what
// spec.include does not list any more, and of the Gateway API, which a cluster may not serve.
type permissionCheck struct {
	run *syncRun
	// lost has the results by permission.
	lost map[string]string
}

// forbidden returns a failure for each step that the requester is not allowed to execute, or one if the requester is not allowed to read
// the catalog.
func (r *syncRun) forbidden(ctx context.Context, steps []plan.Step) ([]v1alpha1.ObjectFailure, error) {
	c := permissionCheck{r, map[string]string{}}
	catalog := r.request.Environment.Spec.CatalogRef.NamespacedName(r.request.Environment.Namespace)
	lost, err := c.check(ctx, access.OfCatalogUse(r.request.Environment))
	switch {
	case err != nil:
		return nil, err
	case lost != "":
		return []v1alpha1.ObjectFailure{failureToDo("read", "AppCatalog", catalog.Namespace, catalog.Name, lost)}, nil
	}
	var failures []v1alpha1.ObjectFailure
	for _, step := range steps {
		lost, err := c.step(ctx, step)
		if err != nil {
			return nil, err
		}
		if lost != "" {
			failures = append(failures, failureToDo(string(step.Verb), step.Kind, step.Namespace, step.Name, lost))
		}
	}
	return failures, nil
}

// step returns the permissions that the requester lacks for a step, empty for none.
func (c permissionCheck) step(ctx context.Context, step plan.Step) (lost string, err error) {
	mapping, err := c.run.syncer.StateReader.Mapper.RESTMapping(step.GroupKind)
	if err != nil {
		return "", fmt.Errorf("find the resource of %s: %w", step.Key, err)
	}
	lost, err = c.check(ctx, access.OfWriting(c.run.request.Environment, mapping.Resource.GroupResource(), requiredVerbs[step.Verb]...))
	if lost != "" && plan.IsGatewayAPI(step.GroupKind) && step.Verb != plan.Delete {
		lost += ", or set spec.adapt.ingressHosts.type to Omit"
	}
	return lost, err
}

// check reviews a permission, once for the whole plan.
func (c permissionCheck) check(ctx context.Context, permission access.Permission) (lost string, err error) {
	key := strings.Join(append(append([]string{permission.Group}, permission.Resources...), permission.Verbs...), "/")
	if lost, known := c.lost[key]; known {
		return lost, nil
	}
	lost, err = c.run.syncer.StateReader.Rights.CheckNow(ctx, *c.run.request.Requester, []access.Permission{permission})
	if err != nil {
		return "", fmt.Errorf("find out whether %s may %s: %w", c.run.request.Requester, permission, err)
	}
	c.lost[key] = lost
	return lost, nil
}

// failureToDo returns the failure of an object that the requester is not allowed to read or write.
func failureToDo(verb, kind, namespace, name, lost string) v1alpha1.ObjectFailure {
	return v1alpha1.ObjectFailure{
		Type: kind, Namespace: namespace, Name: name, Reason: v1alpha1.ReasonPermissionLost,
		Message: summary.Cut(fmt.Sprintf("Failed to %s %s '%s' of %s - %s", verb, kind, name, namespace, lost), v1alpha1.MaxFailureBytes),
	}
}
