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

// trigger is the reason for one catalog update. Each trigger produces at most one SyncStatus, even if processing restarts.
type trigger struct {
	// batch identifies the trigger among those of the catalog. It is the spec.batch of the SyncStatus.
	batch string
	// actor is the user who made the edit or the request. It is empty for source changes.
	actor string
	// detected is the time of the change or of the request.
	detected time.Time
	// sourceChange is true if the source has changed. Such a trigger does not apply a new spec.
	sourceChange bool
	// changes are the changed objects with their known authors.
	changes []pending.Change
	// resync is true if changes may be incomplete.
	resync bool
	// generation is the generation of the spec that is applied, 0 if none is.
	generation int64
	// before is the generation of the edit that must be recorded after this trigger. If that edit has been applied, there is nothing
	// left to do.
	before int64
	// request is the ID of a request to read the source again.
	request string
	// deferred is true if the edit stays pending until a pause ends.
	deferred bool
}

// batchTrigger returns the trigger of a batch.
func batchTrigger(batch pending.Batch) trigger {
	return trigger{batch: batch.ID, sourceChange: true, detected: batch.FirstSeen, changes: batch.Changes, resync: batch.Resync}
}

// recordTrigger returns the trigger of a record that is resumed.
func recordTrigger(record *v1alpha1.SyncStatus) trigger {
	return trigger{
		batch: record.Spec.Batch, actor: record.Status.Actor, detected: record.Status.DetectedAt.Time,
		sourceChange: record.Status.AutoTriggered && !syncstatus.IsEdit(record.Spec.Batch),
	}
}

// editTrigger returns the trigger of the newest edit, which includes earlier ones. It has no actor if the user is not known.
func editTrigger(catalog *v1alpha1.AppCatalog, now time.Time) trigger {
	out := trigger{batch: syncstatus.EditBatch(catalog.Generation), detected: now, generation: catalog.Generation}
	edits := slices.Clone(catalog.Status.PendingEdits)
	slices.SortFunc(edits, func(a, b v1alpha1.CatalogEdit) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, edit := range edits {
		if edit.Generation <= catalog.Generation {
			out.actor, out.detected = edit.Actor, edit.Time.Time
		}
	}
	return out
}

// beforeEdit returns the trigger of the changes that the source made before an edit.
func beforeEdit(edit trigger) trigger {
	return trigger{batch: "before-" + edit.batch, sourceChange: true, detected: edit.detected, before: edit.generation}
}

// pendingTriggers returns the triggers of the edits and requests of users: the newest edit, then the requests to read the source again.
func pendingTriggers(catalog *v1alpha1.AppCatalog, now time.Time) []trigger {
	var out []trigger
	if specChanged(catalog) || hasPendingEdit(catalog) && pausedBy(&catalog.Spec, now).IsZero() {
		out = append(out, editTrigger(catalog, now))
	}
	for _, request := range catalog.Status.PendingSyncs {
		out = append(out, trigger{batch: request.ID, request: request.ID, actor: request.Actor, detected: request.Time.Time})
	}
	return out
}

// hasPending reports whether the catalog has unprocessed edits or sync requests.
func hasPending(catalog *v1alpha1.AppCatalog, now time.Time) bool {
	return len(pendingTriggers(catalog, now)) > 0
}

// specChanged reports whether the spec has changed since it was last processed.
func specChanged(catalog *v1alpha1.AppCatalog) bool {
	return catalog.Generation != catalog.Status.ObservedGeneration
}

// postponed reports whether a trigger, with its record if it has one, waits for the end of a pause. A rollback to a pinned revision does
// not wait, because it does not change what the source provides. Source changes wait for the edit that removes a pin, and are recorded
// with it.
func (t trigger) postponed(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus, now time.Time) bool {
	switch {
	case applying(record), t.rollsBack(catalog, record):
		return false
	case t.sourceChange && unpinned(catalog):
		return true
	}
	return !pausedBy(&catalog.Spec, now).IsZero()
}

// processed reports whether the status of a catalog already shows the result of a trigger. The trigger may be from an older version of
// the catalog.
func (t trigger) processed(catalog *v1alpha1.AppCatalog) bool {
	if t.request != "" {
		return !slices.ContainsFunc(catalog.Status.PendingSyncs, func(p v1alpha1.PendingCatalogSync) bool { return p.ID == t.request })
	}
	generation := max(t.generation, t.before)
	return generation > 0 && generation <= catalog.Status.ObservedGeneration && !hasEditUpTo(catalog, generation)
}
