// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/patch"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// answer does what somebody has asked for of a catalog. Before an edit is taken over, what the source has changed that no
// event has told of yet is recorded as its own. If the catalog was held back, it is the edit that lets the source's changes in.
func (c *catalogs) answer(ctx context.Context, catalog *v1alpha1.AppCatalog, o occasion, seen sight) error {
	if err := c.tryAgain(ctx, catalog, o); err != nil {
		return err
	}
	if o.generation > 0 && !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionPaused) {
		if err := c.keeper.carryOut(ctx, catalog, sourceFirst(o), seen); err != nil {
			return err
		}
	}
	return c.keeper.carryOut(ctx, catalog, o, seen)
}

// tryAgain has what the source changed, and needs somebody, tried again after an edit, which may have put right what was wrong,
// or when somebody has the source read anew, where it may have been. Otherwise a catalog would not be ready for the sake of
// what is past. No batch has that effect: it reads what has changed, and cannot tell that nothing is left of what failed.
func (c *catalogs) tryAgain(ctx context.Context, catalog *v1alpha1.AppCatalog, o occasion) error {
	if o.actor == "" {
		return nil
	}
	var errs []error
	for _, record := range c.records(catalog) {
		if record.Status.State == v1alpha1.SyncStateManualIntervention && !syncstatus.IsEdit(record.Spec.Batch) {
			errs = append(errs, c.keeper.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: o.actor}))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// sourceFirst is the occasion of what the source has changed by itself before an edit.
func sourceFirst(edit occasion) occasion {
	return occasion{batch: "before-" + edit.batch, gathered: true, detected: edit.detected, before: edit.generation}
}

// patchesFor are those that a workload is offered with. While an edit is pending they are those of before, or what the edit
// does would be told as the source's work, and nobody's. What they were can be told by what is offered: false says that
// it cannot. Then what the source has changed of the workload is told with the edit.
func (s *situation) patchesFor(workload reference) (patches patch.Patches, known bool) {
	held := s.held[workload]
	switch {
	case !s.editPending, contentOf(held).Object == nil, s.offersAlready(held):
		return s.rules.Patches, true
	case held.Status.Rendered == nil:
		return patch.Patches{}, true
	}
	// What has been written for this record already stays told by it.
	return s.rules.Patches, s.begun && held.Status.Revision > s.catalog.Status.Revision
}

// offersAlready says whether the spec makes of what a CatalogWorkload holds what it offers.
func (s *situation) offersAlready(held *v1alpha1.CatalogWorkload) bool {
	content, err := capture.Capture(contentOf(held).Object, s.rules.Ignored)
	if err != nil {
		return false
	}
	rendered, err := content.Patched(s.rules.Patches)
	return err == nil && rendered.Hash == held.Status.Hash
}
