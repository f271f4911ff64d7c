// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// rollback is the subresource rollback of an Environment. It edits the spec on behalf of the user, who needs the
// permission to create rollbacks but not to update environments.
func (r *environmentRequests) rollback() *requestREST[*configbutler.Rollback] {
	return &requestREST[*configbutler.Rollback]{
		newRequest: func() *configbutler.Rollback { return &configbutler.Rollback{} },
		validate: func(ctx context.Context, name string, request *configbutler.Rollback) error {
			environment, err := read[*configbutler.Environment](ctx, r.environments, name)
			if err != nil {
				return err
			}
			return validateRollback(environment, request)
		},
		execute: r.executeRollback,
	}
}

// validateRollback rejects a revision that is not in the history.
func validateRollback(environment *configbutler.Environment, request *configbutler.Rollback) error {
	return invalid("Rollback", environment.Name, validation.ValidateRollback(request, environment.Name, environment.Status.History))
}

func (r *environmentRequests) executeRollback(ctx context.Context, name string, request *configbutler.Rollback, dryRun []string) error {
	if _, err := requester(ctx); err != nil {
		return err
	}
	to, already := request.Spec.Revision, false
	environment, err := change(ctx, r.environments, name, dryRun, func(environment *configbutler.Environment) error {
		if environment.DeletionTimestamp != nil {
			return refused("environments", name, "it is being deleted")
		}
		already = environment.Spec.PinnedRevision != nil && *environment.Spec.PinnedRevision == to
		environment.Spec.PinnedRevision = &to
		return validateRollback(environment, request)
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer, from := &request.Status, environment.Status.AppliedRevision
	switch {
	case already:
		answer.Message = fmt.Sprintf("Environment %s is pinned to revision %d already; the subresource sync brings it there again", name, to)
	case dryrun.IsDryRun(dryRun):
		answer.Message = fmt.Sprintf("Environment %s would go from revision %d to revision %d of its catalog (dry run)", name, from, to)
	default:
		answer.Message = fmt.Sprintf("Environment %s goes from revision %d to revision %d of its catalog, and automatic syncs wait",
			name, from, to)
		answer.ID = syncstatus.EditBatch(environment.Generation)
		r.awaitEdit(ctx, environment)
		if record, _ := r.recordOf(ctx, environment, v1alpha1.SyncTypeEnvironment, answer.ID); record != nil {
			addRecords(answer, record)
		}
	}
	if !dryrun.IsDryRun(dryRun) {
		answer.Message += unpinHint(environment)
	}
	return nil
}

// unpinHint returns how to follow the catalog again after a rollback. Without the pin, the environment syncs like any
// other.
func unpinHint(environment *configbutler.Environment) string {
	way := "; to go forward again: " + clearCommand("environment", environment, "pinnedRevision")
	if !environment.Spec.AutoSync {
		way += ", and then ask for a sync"
	}
	return way
}

// awaitEdit waits for a while until the controller has observed the edited spec.
func (r *environmentRequests) awaitEdit(ctx context.Context, edited *configbutler.Environment) {
	await(ctx, r.waitTimeout, r.statuses, edited.Name, edited.ResourceVersion, func(now *configbutler.Environment) bool {
		return now.Status.ObservedGeneration >= edited.Generation
	})
}
