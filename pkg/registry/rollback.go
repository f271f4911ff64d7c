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

// rollback is the subresource rollback of an AppCatalog. It edits the spec on behalf of the user, who needs the right to
// create rollbacks and none to change catalogs: what a catalog offered before, it has been allowed to show by whoever
// wrote its spec then. For the same reason an edit of spec.pinnedRevision takes no right to read the source.
func (c *catalogRequests) rollback() *requestREST[*configbutler.Rollback] {
	return &requestREST[*configbutler.Rollback]{
		newRequest: func() *configbutler.Rollback { return &configbutler.Rollback{} },
		judge:      c.judgeRollback, carryOut: c.carryOutRollback,
	}
}

// judgeRollback says whether there is such a revision. The strategy of catalogs asks again when the spec is changed.
func (c *catalogRequests) judgeRollback(ctx context.Context, name string, request *configbutler.Rollback) error {
	catalog, err := read[*configbutler.AppCatalog](ctx, c.catalogs, name)
	if err != nil {
		return err
	}
	return invalid("Rollback", name, validation.ValidateRollback(request, name, catalog.Status.History))
}

func (c *catalogRequests) carryOutRollback(ctx context.Context, name string, request *configbutler.Rollback, dryRun []string) error {
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
		answer.Message = fmt.Sprintf("AppCatalog %s would go from revision %d to what it was at revision %d (dry run)", name, catalog.Status.Revision, to)
	default:
		answer.Message = fmt.Sprintf("AppCatalog %s goes from revision %d to what it was at revision %d, and changes of the source wait",
			name, catalog.Status.Revision, to)
		c.awaitEdit(ctx, catalog)
		if record := c.recordOf(ctx, catalog, syncstatus.EditBatch(catalog.Generation)); record != nil {
			tell(answer, record)
		}
	}
	if !dryrun.IsDryRun(dryRun) {
		answer.Message += "; to go forward again: " + clearing("appcatalog", catalog, "pinnedRevision")
	}
	return nil
}

// awaitEdit waits a while until the spec of a catalog as it was edited has been taken over.
func (c *catalogRequests) awaitEdit(ctx context.Context, edited *configbutler.AppCatalog) {
	await(ctx, c.patience, c.catalogs, edited.Name, edited.ResourceVersion, func(now *configbutler.AppCatalog) bool {
		return now.Status.ObservedGeneration >= edited.Generation
	})
}
