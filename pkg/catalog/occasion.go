// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// occasion is why a catalog is brought up to date. It is recorded once, however often it is begun.
type occasion struct {
	// batch tells its record from others of the catalog.
	batch string
	// actor is the user who asked for it; empty when the source has changed by itself.
	actor string
	// detected is when that was.
	detected time.Time
	// gathered says that the source has changed by itself: it is no time to take a spec over.
	gathered bool
	// changes are what is known of who changed the source.
	changes []pending.Change
	// resync says that there may have been others.
	resync bool
	// generation is that of the spec that is taken over, 0 when that is another occasion.
	generation int64
	// before is the generation of the edit that this is to be recorded before; nothing is when the edit has been taken over.
	before int64
	// request is the ID of a request to read the source anew.
	request string
	// later says that the edit waits for the end of a pause.
	later bool
}

// occasionOf is that of a batch.
func occasionOf(batch pending.Batch) occasion {
	return occasion{batch: batch.ID, gathered: true, detected: batch.FirstSeen, changes: batch.Changes, resync: batch.Resync}
}

// resumed is the occasion of a record that is gone on with.
func resumed(record *v1alpha1.SyncStatus) occasion {
	return occasion{
		batch: record.Spec.Batch, actor: record.Status.Actor, detected: record.Status.DetectedAt.Time,
		gathered: record.Status.AutoTriggered && !syncstatus.IsEdit(record.Spec.Batch),
	}
}

// waits says whether an occasion, with its record if it has one, changes nothing for now. To pin a catalog is no change of
// its source, and waits for nothing; and what the source has changed is told with the edit that takes a pin away.
func (o occasion) waits(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus, now time.Time) bool {
	switch {
	case begunToApply(record), o.rollsBack(catalog, record):
		return false
	case o.gathered && unpinned(catalog):
		return true
	}
	return !waits(&catalog.Spec, now).ok()
}

// edited says whether the spec has changed since it was last taken over.
func edited(catalog *v1alpha1.AppCatalog) bool {
	return catalog.Generation != catalog.Status.ObservedGeneration
}

// asked says whether somebody waits for a catalog.
func asked(catalog *v1alpha1.AppCatalog, now time.Time) bool {
	return len(occasionsOf(catalog, now)) > 0
}

// answered says whether what was asked for has been done: who asks again has read the catalog before.
func (o occasion) answered(catalog *v1alpha1.AppCatalog) bool {
	if o.request != "" {
		return !slices.ContainsFunc(catalog.Status.PendingSyncs, func(p v1alpha1.PendingCatalogSync) bool { return p.ID == o.request })
	}
	generation := max(o.generation, o.before)
	return generation > 0 && generation <= catalog.Status.ObservedGeneration && !awaits(catalog, generation)
}

// occasionsOf are what people have asked for: a change of the spec, and then to read the source anew.
func occasionsOf(catalog *v1alpha1.AppCatalog, now time.Time) []occasion {
	var out []occasion
	if edited(catalog) || unanswered(catalog) && waits(&catalog.Spec, now).ok() {
		out = append(out, editOf(catalog, now))
	}
	for _, request := range catalog.Status.PendingSyncs {
		out = append(out, occasion{batch: request.ID, request: request.ID, actor: request.Actor, detected: request.Time.Time})
	}
	return out
}

// editOf is the occasion of the newest edit, which holds those before it. One that nobody is known to have made is recorded
// without an actor.
func editOf(catalog *v1alpha1.AppCatalog, now time.Time) occasion {
	out := occasion{batch: syncstatus.EditBatch(catalog.Generation), detected: now, generation: catalog.Generation}
	edits := slices.Clone(catalog.Status.PendingEdits)
	slices.SortFunc(edits, func(a, b v1alpha1.CatalogEdit) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, edit := range edits {
		if edit.Generation <= catalog.Generation {
			out.actor, out.detected = edit.Actor, edit.Time.Time
		}
	}
	return out
}
