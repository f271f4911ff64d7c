// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// Edits during a pause are applied when the pause ends, after the source changes, and with their editor as actor. Until then they remain in
// status.pendingEdits. Only a rollback does not wait for the end of a pause.

// hasPendingEdit reports whether the status does not show the result of the current spec: it has not been processed yet, or waits for the
// end of a pause.
func hasPendingEdit(catalog *v1alpha1.AppCatalog) bool {
	return specChanged(catalog) || hasEditUpTo(catalog, catalog.Generation)
}

// hasEditUpTo reports whether an edit of a generation or an earlier one is pending.
func hasEditUpTo(catalog *v1alpha1.AppCatalog, generation int64) bool {
	return slices.ContainsFunc(catalog.Status.PendingEdits, func(edit v1alpha1.CatalogEdit) bool { return edit.Generation <= generation })
}

// postpone completes an update that changes nothing until a pause ends.
func (u *updater) postpone(ctx context.Context, t *task, source sourceState) error {
	t.trigger.deferred = t.trigger.generation > 0 && (unpinned(t.catalog) || u.editHasEffect(t, source))
	return u.complete(ctx, t, nil)
}

// editHasEffect reports whether an edit changes what is offered, in addition to the source changes. Most edits of a paused catalog only
// change the pause.
func (u *updater) editHasEffect(t *task, source sourceState) bool {
	rules, err := capture.NewRules(&t.catalog.Spec)
	if err != nil {
		return true // The error is reported when the pause ends.
	}
	in := planInput{catalog: t.catalog, rules: rules, held: t.held, source: source, now: u.clock.Now()}
	whole, err := newPlan(in)
	if err != nil {
		return true
	}
	in.sourceOnly = true
	withoutEdit, err := newPlan(in)
	return err != nil || !slices.Equal(whole.entries, withoutEdit.entries)
}
