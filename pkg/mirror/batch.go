// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// group is the changes that become one commit.
type group struct {
	author  Author
	changes []Change
}

// groupChanges divides changes, given in the order of events, into commits:
//
//   - PerChange: each change is a commit of its own.
//   - PerAuthor: changes of one author in a row share a commit, so nobody's change is
//     booked to somebody else and the order of events stays.
//   - Batch: one commit.
//
// Within a commit the last change of a path counts; a Batch has an author only when all
// its changes have the same.
func groupChanges(granularity v1alpha1.Granularity, changes []Change) []group {
	var groups []group
	for _, change := range changes {
		last := len(groups) - 1
		if last >= 0 && shares(granularity, groups[last], change) {
			groups[last].changes = append(groups[last].changes, change)
			if !groups[last].author.same(change.Author) {
				groups[last].author = Author{}
			}
			continue
		}
		groups = append(groups, group{author: change.Author, changes: []Change{change}})
	}
	return groups
}

func shares(granularity v1alpha1.Granularity, g group, change Change) bool {
	switch granularity {
	case v1alpha1.GranularityPerChange:
		return false
	case v1alpha1.GranularityBatch:
		return true
	default:
		return g.author.same(change.Author)
	}
}

// final returns the last change of each path, in the order in which the paths were first
// changed.
func (g group) final() []Change {
	position := make(map[string]int, len(g.changes))
	final := make([]Change, 0, len(g.changes))
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
