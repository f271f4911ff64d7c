// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// isOpen reports whether a record can be extended: it waits for a run or a retry.
func isOpen(record *v1alpha1.SyncStatus) bool {
	if record == nil {
		return false
	}
	switch record.Status.State {
	case v1alpha1.SyncStatePending, v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention:
		return record.Spec.Type == v1alpha1.SyncTypeDependency
	}
	return false
}

// differs reports whether the version differs from the copied one.
func (i *item) differs() bool { return i.version != i.copied.Copied() }

// summary returns the entry of a record for the item.
func (i *item) summary() v1alpha1.ResourceSummary {
	how := v1alpha1.ChangeChanged
	switch v1alpha1.SeenRemoved {
	case i.copied.Copied():
		how = v1alpha1.ChangeAdded
	case i.version:
		how = v1alpha1.ChangeRemoved
	}
	return v1alpha1.ResourceSummary{Type: string(i.of.Type), Namespace: i.of.Namespace, Name: i.of.Name, ChangeType: how}
}

// isAbout reports whether an entry refers to the item's object.
func (i *item) isAbout(s v1alpha1.ResourceSummary) bool {
	return s.Type == string(i.of.Type) && s.Namespace == i.of.Namespace && s.Name == i.of.Name
}

// differing returns the entries of the items that differ from their copies.
func differing(items []item) []v1alpha1.ResourceSummary {
	var out []v1alpha1.ResourceSummary
	for _, i := range items {
		if i.differs() {
			out = append(out, i.summary())
		}
	}
	return out
}

// extend returns the record with the items that differ added and the others removed. A record of a failed run keeps them,
// because the run may have written some. A record that the server has created and that becomes empty is Superseded and
// keeps its last list.
func extend(record *v1alpha1.SyncStatus, items []item, by []v1alpha1.SourceAuthor, now time.Time) (*v1alpha1.SyncStatus, error) {
	changes := slices.DeleteFunc(slices.Clone(record.Status.ResourceSummaries), func(s v1alpha1.ResourceSummary) bool {
		return record.Status.State == v1alpha1.SyncStatePending &&
			slices.ContainsFunc(items, func(i item) bool { return i.isAbout(s) && !i.differs() })
	})
	changes = append(changes, differing(items)...)
	if len(changes) == 0 && len(record.Status.ResourceSummaries) > 0 && record.Status.AutoTriggered {
		return syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateSuperseded, At: now})
	}
	next := record.DeepCopy()
	syncstatus.SetChanges(next, changes)
	syncstatus.AddAuthors(next, by)
	return next, nil
}
