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

// A pin is a pin: what a catalog offers while spec.pinnedRevision is set is what it offered with that revision, as it was
// captured and rendered then. Neither the source nor another edit of the spec changes it. What they have changed is taken
// over when the pin is taken away, and is the work of who does that.

// rollsBack says whether an occasion brings a catalog to the revision that it is pinned to. One that had begun before it was
// pinned goes on with what it had begun.
func (o occasion) rollsBack(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) bool {
	if catalog.Spec.PinnedRevision == nil || o.gathered || o.request != "" {
		return false
	}
	return !begunToApply(record) || o.batch == syncstatus.EditBatch(catalog.Generation)
}

// unpinned says whether somebody has taken away the pin of a catalog that still offers what it was pinned to: until it has been
// looked at, or until the pause ends in which it was taken away.
func unpinned(catalog *v1alpha1.AppCatalog) bool {
	paused := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused)
	return paused != nil && paused.Reason == v1alpha1.ReasonPinned && catalog.Spec.PinnedRevision == nil && unanswered(catalog)
}

// rollBack plans that a catalog offers again what it did with the revision that it is pinned to.
func (k *keeper) rollBack(ctx context.Context, t *task) (plan, error) {
	pinned := *t.catalog.Spec.PinnedRevision
	then, err := k.revisions.Offered(ctx, t.catalog.UID, pinned)
	if err != nil {
		return plan{}, err
	}
	s := situation{catalog: t.catalog, held: t.held, now: k.clock.Now()}
	switch {
	case then != nil:
		return newRollback(s, pinned, then)
	case pinned == t.catalog.Status.Revision: // It stays as it is.
		return plan{entries: t.catalog.Status.Workloads}, nil
	}
	return plan{}, &problem{v1alpha1.ReasonRevisionNotKept, fmt.Errorf(
		"cannot go back to revision %d: this server does not have what was offered with it, which is kept from when a revision is made; "+
			"pin another revision of status.history, or take spec.pinnedRevision out", pinned)}
}

// newRollback says what a catalog becomes that goes back to what it offered then. It changes nothing and asks nobody.
func newRollback(s situation, revision int64, then map[reference]*v1alpha1.CatalogWorkloadRecord) (plan, error) {
	out, offered := plan{}, s.offered()
	var workloads []reference
	for workload := range offered {
		workloads = append(workloads, workload)
	}
	for workload := range then {
		workloads = append(workloads, workload)
	}
	slices.SortFunc(workloads, compareReferences)
	for _, workload := range slices.Compact(workloads) {
		next, err := s.restored(workload, offered[workload], then[workload])
		if err != nil {
			return plan{}, &problem{v1alpha1.ReasonRevisionNotKept, fmt.Errorf("cannot go back to revision %d: %w", revision, err)}
		}
		out.add(&s, workload, next)
	}
	return out, nil
}

// restored is the step of a workload that was offered as the record says, or not at all.
func (s *situation) restored(workload reference, entry *v1alpha1.CatalogEntry, then *v1alpha1.CatalogWorkloadRecord) (step, error) {
	if then == nil {
		return step{change: v1alpha1.ChangeRemoved}, nil
	}
	next := v1alpha1.CatalogEntry{Kind: workload.Kind, Name: workload.Name, Hash: then.Hash, Missing: then.Missing}
	out := step{entry: &next, change: changeOf(entry, &next)}
	if next.Revision = s.nextRevision(); out.change == "" {
		next.Revision = entry.Revision
	}
	held, content := s.held[workload], then
	switch {
	case then.Manifest != nil:
	case held != nil && held.Status.Hash == then.Hash:
		content = &held.Status
	case out.change != "" && out.change != v1alpha1.ChangeRemoved:
		return step{}, fmt.Errorf("what %s %q was is not kept; manifests of more than %d bytes are not",
			workload.Kind, workload.Name, v1alpha1.MaxManifestBytes)
	}
	out.record = s.newRecord(workload)
	content.DeepCopyInto(&out.record.Status)
	status := &out.record.Status
	status.Revision, status.Missing, status.MissingSince = next.Revision, then.Missing, then.MissingSince
	if held != nil { // What was last seen of the source is as true as before.
		status.Source = held.Status.Source
	}
	return out, nil
}

// changeOf is how a workload differs that is offered in another way, empty if it does not.
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
