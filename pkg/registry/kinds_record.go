// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// mostNamed is the number of names that a cell shows.
const mostNamed = 3

func syncStatuses() kind[*configbutler.SyncStatus, struct{}, configbutler.SyncRecord] {
	type obj = *configbutler.SyncStatus
	return kind[obj, struct{}, configbutler.SyncRecord]{
		plural: "syncstatuses", singular: "syncstatus", shortNames: []string{"ss"}, namespaced: true,
		newObject:      func() obj { return &configbutler.SyncStatus{} },
		newList:        func() runtime.Object { return &configbutler.SyncStatusList{} },
		validate:       validation.ValidateSyncStatus,
		validateUpdate: validation.ValidateSyncStatusUpdate,
		columns: []column[obj]{
			textColumn("Type", "What the record is about.", func(o obj) string { return string(o.Spec.Type) }),
			textColumn("Subject", "The catalog or environment.", func(o obj) string { return o.Spec.Subject.Name }),
			stateColumn(recordState),
			textColumn("Changed", "What changed.", func(o obj) string { return abbreviateList(changedNames(o), int(o.Status.WorkloadCount)) }),
			textColumn("By", "Who asked for it, or else changed the source.", func(o obj) string { return abbreviateList(responsible(o), 0) }),
			wide(numberColumn("Revision", "The catalog's revision that it made or brings.", func(o obj) int64 { return o.Status.Revision })),
			wide(textColumn("Commit", "The first of the commits that hold the change.", func(o obj) string {
				if len(o.Status.Commits) == 0 {
					return ""
				}
				return abbreviated(o.Status.Commits[0].SHA)
			})),
			wide(numberColumn("Attempts", "How often work has begun.", func(o obj) int64 { return int64(o.Status.Attempts) })),
			wide(agoColumn("Resolved", "Time since it came to its end.", func(o obj) *metav1.Time { return o.Status.ResolvedAt })),
			ageColumn[obj](),
		},
	}
}

// recordState returns the summary of a record.
func recordState(o *configbutler.SyncStatus) string {
	record, err := versioned(o)
	if err != nil {
		return string(o.Status.State) // what is stored has been converted before
	}
	return syncstatus.Summary(record)
}

// changedNames returns the names of the changed objects, sorted and without duplicates.
func changedNames(o *configbutler.SyncStatus) []string {
	if len(o.Status.WorkloadNames) > 0 {
		return o.Status.WorkloadNames
	}
	names := make([]string, len(o.Status.ResourceSummaries))
	for i, summary := range o.Status.ResourceSummaries {
		names[i] = summary.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// responsible returns the user who requested the work of a record, or else the known authors of the change in the
// source.
func responsible(o *configbutler.SyncStatus) []string {
	if o.Status.Actor != "" {
		return []string{o.Status.Actor}
	}
	var names []string
	for _, author := range o.Status.ChangedBy {
		if name := cmp.Or(author.Username, author.FieldManager); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// abbreviateList lists the first names and counts the others. total can be larger than the number of names.
func abbreviateList(names []string, total int) string {
	shown := names[:min(len(names), mostNamed)]
	list := strings.Join(shown, ",")
	if more := max(len(names), total) - len(shown); len(shown) > 0 && more > 0 {
		return fmt.Sprintf("%s +%d", list, more)
	}
	return list
}
