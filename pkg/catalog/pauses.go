// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// A pause keeps a catalog as it is. What its editors change meanwhile is taken over when the pause ends, after what the
// source has changed, and is their work then: until then it stays among the edits that the catalog does not show, in its
// status. Only a rollback waits for nothing.

// unanswered says whether the catalog does not show what its spec says: it has not been looked at, or waits for the end of
// a pause.
func unanswered(catalog *v1alpha1.AppCatalog) bool {
	return edited(catalog) || awaits(catalog, catalog.Generation)
}

// awaits says whether an edit waits to be shown, of a generation or one before.
func awaits(catalog *v1alpha1.AppCatalog, generation int64) bool {
	return slices.ContainsFunc(catalog.Status.PendingEdits, func(edit v1alpha1.CatalogEdit) bool { return edit.Generation <= generation })
}

// wait ends an occasion that changes nothing for now.
func (k *keeper) wait(ctx context.Context, t *task, seen sight) error {
	t.later = t.generation > 0 && (unpinned(t.catalog) || k.counts(t, seen))
	return k.close(ctx, t, nil)
}

// counts says whether an edit changes what is offered, and not the source alone. Most edits of a catalog that is paused
// are those of the pause.
func (k *keeper) counts(t *task, seen sight) bool {
	rules, err := capture.NewRules(&t.catalog.Spec)
	if err != nil {
		return true // That it fails is told when the pause ends.
	}
	s := situation{catalog: t.catalog, rules: rules, held: t.held, seen: seen, now: k.clock.Now()}
	whole, err := newPlan(s)
	if err != nil {
		return true
	}
	s.sourceOnly = true
	source, err := newPlan(s)
	return err != nil || !slices.Equal(whole.entries, source.entries)
}
