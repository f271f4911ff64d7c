// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// group has the changes of one commit.
type group struct {
	author  attribution.Author
	changes []outbox.Change
}

// groupChanges divides changes, given in the order of events, into commits:
//
//   - PerChange: each change is a commit of its own.
//   - PerAuthor: consecutive changes of one author share a commit, so that every change has its author and the order of
//     events is kept.
//   - Batch: one commit.
//
// Within a commit the last change of a path counts. A Batch has an author only if all its changes have the same. The
// attribution of a commit is the least exact of its changes.
func groupChanges(granularity v1alpha1.Granularity, changes []outbox.Change) []group {
	var groups []group
	for _, change := range changes {
		last := len(groups) - 1
		if last >= 0 && shares(granularity, groups[last], change) {
			groups[last].changes = append(groups[last].changes, change)
			groups[last].author = common(groups[last].author, change.Author)
			continue
		}
		groups = append(groups, group{author: change.Author, changes: []outbox.Change{change}})
	}
	return groups
}

// groupFound divides the changes of a comparison, which have no order, into commits: one for each author, or one with Batch.
func groupFound(granularity v1alpha1.Granularity, changes []outbox.Change) []group {
	if granularity == v1alpha1.GranularityBatch {
		return groupChanges(granularity, changes)
	}
	slices.SortStableFunc(changes, func(a, b outbox.Change) int {
		return cmp.Or(strings.Compare(a.Author.Username, b.Author.Username), strings.Compare(a.Author.ImpersonatedBy, b.Author.ImpersonatedBy))
	})
	return groupChanges(v1alpha1.GranularityPerAuthor, changes)
}

func shares(granularity v1alpha1.Granularity, g group, change outbox.Change) bool {
	switch granularity {
	case v1alpha1.GranularityPerChange:
		return false
	case v1alpha1.GranularityBatch:
		return true
	default:
		return sameAuthor(g.author, change.Author)
	}
}

// sameAuthor reports whether two authors can share a commit. It ignores groups, and for known users the source of the
// attribution.
func sameAuthor(a, b attribution.Author) bool {
	if a.Known() && b.Known() {
		a.Signal, b.Signal = "", ""
	}
	a.Signal, b.Signal = cmp.Or(a.Signal, attribution.Unknown), cmp.Or(b.Signal, attribution.Unknown)
	a.Groups, b.Groups = nil, nil
	return reflect.DeepEqual(a, b)
}

// common returns the author of a commit with changes of both authors: none if they differ.
func common(a, b attribution.Author) attribution.Author {
	if !sameAuthor(a, b) {
		return attribution.Author{}
	}
	if b.Signal == attribution.Admission {
		a.Signal = b.Signal
	}
	return a
}

// final returns the last change of each path, in the order in which the paths were first
// changed.
func (g group) final() []outbox.Change {
	position := make(map[string]int, len(g.changes))
	final := make([]outbox.Change, 0, len(g.changes))
	for _, change := range g.changes {
		if i, ok := position[change.Path]; ok {
			final[i] = change
			continue
		}
		position[change.Path] = len(final)
		final = append(final, change)
	}
	return final
}
