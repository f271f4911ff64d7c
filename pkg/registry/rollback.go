// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// rollback is the subresource rollback of an AppCatalog. It edits the spec on behalf of the user, who needs the
// permission to create rollbacks but not to update catalogs: the earlier author of the spec was allowed to show the
// earlier content. For the same reason, an edit of spec.pinnedRevision requires no permission to read the source.
// Environments do not get Secrets by the consent of the catalog's editor to which only the earlier content refers.
func (c *catalogRequests) rollback() *requestREST[*configbutler.Rollback] {
	return &requestREST[*configbutler.Rollback]{
		newRequest: func() *configbutler.Rollback { return &configbutler.Rollback{} },
		validate:   c.validateRollback, execute: c.executeRollback,
	}
}

// validateRollback rejects a revision that is not in the history. The catalog's strategy checks that again when the
// spec changes.
func (c *catalogRequests) validateRollback(ctx context.Context, name string, request *configbutler.Rollback) error {
	catalog, err := read[*configbutler.AppCatalog](ctx, c.catalogs, name)
	if err != nil {
		return err
	}
	return invalid("Rollback", name, validation.ValidateRollback(request, name, catalog.Status.History))
}

func (c *catalogRequests) executeRollback(ctx context.Context, name string, request *configbutler.Rollback, dryRun []string) error {
	if _, err := requester(ctx); err != nil {
		return err
	}
	to, already := request.Spec.Revision, false
	catalog, err := change(ctx, c.catalogs, name, dryRun, func(catalog *configbutler.AppCatalog) error {
		already = catalog.Spec.PinnedRevision != nil && *catalog.Spec.PinnedRevision == to
		catalog.Spec.PinnedRevision = &to
		return nil
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer := &request.Status
	switch {
	case already:
		answer.Message = fmt.Sprintf("AppCatalog %s is pinned to revision %d already", name, to)
	case dryrun.IsDryRun(dryRun):
		answer.Message = fmt.Sprintf("AppCatalog %s would go from revision %d to what it was at revision %d (dry run)", name,
			catalog.Status.Revision, to)
	default:
		answer.Message = fmt.Sprintf("AppCatalog %s goes from revision %d to what it was at revision %d, and changes of the source wait",
			name, catalog.Status.Revision, to)
		answer.ID = syncstatus.EditBatch(catalog.Generation)
		c.awaitEdit(ctx, catalog)
		if record := c.recordOf(ctx, catalog, answer.ID); record != nil {
			addRecords(answer, record)
		}
	}
	if !dryrun.IsDryRun(dryRun) {
		answer.Message += "; to go forward again: " + clearCommand("appcatalog", catalog, "pinnedRevision")
	}
	return nil
}

// awaitEdit waits for a while until the controller has observed the edited spec.
func (c *catalogRequests) awaitEdit(ctx context.Context, edited *configbutler.AppCatalog) {
	await(ctx, c.waitTimeout, c.catalogs, edited.Name, edited.ResourceVersion, func(now *configbutler.AppCatalog) bool {
		return now.Status.ObservedGeneration >= edited.Generation
	})
}
