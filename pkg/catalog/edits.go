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

// process processes an edit or a request of a user. Before an edit is applied, source changes that no event has reported yet are recorded
// without the editor as actor. If the catalog was paused, the edit itself applies the source changes.
func (r *reconciler) process(ctx context.Context, catalog *v1alpha1.AppCatalog, t trigger, source sourceState) error {
	if err := r.retryFailed(ctx, catalog, t); err != nil {
		return err
	}
	if t.generation > 0 && !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionPaused) {
		if err := r.updater.update(ctx, catalog, beforeEdit(t), source); err != nil {
			return err
		}
	}
	return r.updater.update(ctx, catalog, t, source)
}

// retryFailed retries the source changes that need manual intervention, because the edit may have resolved their failure, or a user may
// have resolved it in the source before requesting that it is read again. Otherwise the catalog would not become ready because of a past
// failure. A batch does not have this effect: it reads only changed objects, so it cannot determine that a failure is resolved.
func (r *reconciler) retryFailed(ctx context.Context, catalog *v1alpha1.AppCatalog, t trigger) error {
	if t.actor == "" {
		return nil
	}
	var errs []error
	for _, record := range r.lastWritten(catalog) {
		if record.Status.State == v1alpha1.SyncStateManualIntervention && !syncstatus.IsEdit(record.Spec.Batch) {
			errs = append(errs, r.updater.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: t.actor}))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// patchesFor returns the patches of a workload. While an edit is pending these are the patches before the edit, because the effect of the
// edit must not be recorded as a source change without an actor. They are derived from the offered content. known is false
// if that is not possible. Then the source change of the workload is recorded with the edit.
func (in *planInput) patchesFor(workload reference) (patches patch.Patches, known bool) {
	held := in.held[workload]
	switch {
	case !in.editPending, contentOf(held).Object == nil, in.rendersTheSame(held):
		return in.rules.Patches, true
	case held.Status.Rendered == nil:
		return patch.Patches{}, true
	}
	// A workload that was written for this record stays in it.
	return in.rules.Patches, in.resumed && held.Status.Revision > in.catalog.Status.Revision
}

// rendersTheSame reports whether the current spec renders the content of a CatalogWorkload as it is offered.
func (in *planInput) rendersTheSame(held *v1alpha1.CatalogWorkload) bool {
	content, err := capture.Capture(contentOf(held).Object, in.rules.Ignored)
	if err != nil {
		return false
	}
	rendered, err := content.Patched(in.rules.Patches)
	return err == nil && rendered.Hash == held.Status.Hash
}
