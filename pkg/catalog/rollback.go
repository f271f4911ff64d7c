// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// While spec.pinnedRevision is set, a catalog offers what it offered with that revision, as it was captured and rendered then. Neither the
// source nor other edits of the spec change it. Their changes are applied when the pin is removed, with the user who removes it as actor.

// rollsBack reports whether a trigger restores the pinned revision of a catalog. A trigger that was interrupted before the catalog was
// pinned is completed first.
func (t trigger) rollsBack(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) bool {
	if catalog.Spec.PinnedRevision == nil || t.sourceChange || t.request != "" {
		return false
	}
	return !applying(record) || t.batch == syncstatus.EditBatch(catalog.Generation)
}

// unpinned reports whether a catalog still offers a pinned revision although its pin has been removed: until that edit has been
// processed, or until the end of the pause in which it was made.
func unpinned(catalog *v1alpha1.AppCatalog) bool {
	paused := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused)
	return paused != nil && paused.Reason == v1alpha1.ReasonPinned && catalog.Spec.PinnedRevision == nil && hasPendingEdit(catalog)
}

// planRollback computes the plan that restores the pinned revision of a catalog.
func (u *updater) planRollback(ctx context.Context, t *task) (plan, error) {
	pinned := *t.catalog.Spec.PinnedRevision
	then, err := u.revisions.Offered(ctx, t.catalog.UID, pinned)
	if err != nil {
		return plan{}, err
	}
	in := planInput{catalog: t.catalog, held: t.held, now: u.clock.Now()}
	switch {
	case then != nil:
		return newRollback(in, pinned, then)
	case pinned == t.catalog.Status.Revision: // Nothing changes.
		return plan{entries: t.catalog.Status.Workloads}, nil
	}
	return plan{}, &stallingError{v1alpha1.ReasonRevisionNotKept, fmt.Errorf(
		"cannot roll back to revision %d: its content is not stored on this server; "+
			"pin another revision of status.history, or remove spec.pinnedRevision", pinned)}
}

// newRollback computes the plan that restores the workloads of a revision. It is a pure function.
func newRollback(in planInput, revision int64, then map[reference]*v1alpha1.CatalogWorkloadRecord) (plan, error) {
	out, offered := plan{isRollback: true}, in.offered()
	var workloads []reference
	for workload := range offered {
		workloads = append(workloads, workload)
	}
	for workload := range then {
		workloads = append(workloads, workload)
	}
	slices.SortFunc(workloads, compareReferences)
	for _, workload := range slices.Compact(workloads) {
		next, err := in.restore(workload, offered[workload], then[workload])
		if err != nil {
			return plan{}, &stallingError{v1alpha1.ReasonRevisionNotKept, fmt.Errorf("cannot roll back to revision %d: %w", revision, err)}
		}
		out.add(&in, workload, next)
	}
	return out, nil
}

// restore returns the step of a workload that restores its record in a revision, nil if the revision did not have the workload.
func (in *planInput) restore(workload reference, entry *v1alpha1.CatalogEntry, then *v1alpha1.CatalogWorkloadRecord) (step, error) {
	if then == nil {
		return step{change: v1alpha1.ChangeRemoved}, nil
	}
	next := v1alpha1.CatalogEntry{Kind: workload.Kind, Name: workload.Name, Hash: then.Hash, Missing: then.Missing}
	out := step{entry: &next, change: changeOf(entry, &next)}
	if next.Revision = in.nextRevision(); out.change == "" {
		next.Revision = entry.Revision
	}
	held, content := in.held[workload], then
	switch {
	case then.Manifest != nil:
	case held != nil && held.Status.Hash == then.Hash:
		content = &held.Status
	case out.change != "" && out.change != v1alpha1.ChangeRemoved:
		return step{}, fmt.Errorf("the manifest of %s %q is not stored, because it was larger than %d bytes",
			workload.Kind, workload.Name, v1alpha1.MaxManifestBytes)
	}
	out.workload = in.newWorkload(workload)
	content.DeepCopyInto(&out.workload.Status)
	status := &out.workload.Status
	status.Revision, status.Missing, status.MissingSince = next.Revision, then.Missing, then.MissingSince
	if held != nil { // A rollback does not change what was last observed in the source.
		status.Source = held.Status.Source
	}
	return out, nil
}

// A plan that ends a rollback cannot read all workloads from the source: some were deleted there. These become what the catalog had last
// taken, not what the rollback brought back.

// unread returns the step of a workload that was not read from the source.
func (in *planInput) unread(workload reference, entry *v1alpha1.CatalogEntry) step {
	if in.taken == nil {
		return step{entry: entry}
	}
	return in.retaken(workload, entry, in.taken[workload])
}

// retakenAbsent returns the step of a workload that is not in the source, or no longer selected.
func (in *planInput) retakenAbsent(workload reference, entry *v1alpha1.CatalogEntry) step {
	then := in.taken[workload]
	if then == nil || !in.rules.Selection.Stays(workload, contentOf(&v1alpha1.CatalogWorkload{Status: *then}).Object) {
		return in.retaken(workload, entry, nil)
	}
	then = then.DeepCopy()
	if then.Missing = true; then.MissingSince == nil {
		then.MissingSince = seconds(in.now)
	}
	out := in.retaken(workload, entry, then)
	if out.workload != nil {
		out.workload.Status.Source = v1alpha1.SourceObservation{Namespace: in.catalog.Spec.SourceNamespace}
	}
	return out
}

// retaken returns the step of a workload that becomes what was last taken, nil if that had it not. A workload whose manifest was too large
// to be stored is no longer offered.
func (in *planInput) retaken(workload reference, entry *v1alpha1.CatalogEntry, then *v1alpha1.CatalogWorkloadRecord) step {
	if then != nil {
		if out, err := in.restore(workload, entry, then); err == nil {
			return out
		}
	}
	if entry == nil {
		return step{}
	}
	return step{change: v1alpha1.ChangeRemoved}
}

// changeOf returns the change from one entry of a workload to another, empty if there is none.
func changeOf(entry, next *v1alpha1.CatalogEntry) v1alpha1.ChangeType {
	switch {
	case entry == nil, entry.Missing && !next.Missing:
		return v1alpha1.ChangeAdded
	case next.Missing && !entry.Missing:
		return v1alpha1.ChangeRemoved
	case entry.Hash != next.Hash:
		return v1alpha1.ChangeChanged
	}
	return ""
}
