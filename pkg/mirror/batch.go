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
)

// group is the changes that become one commit.
type group struct {
	author  attribution.Author
	changes []Change
}

// groupChanges divides changes, given in the order of events, into commits:
//
//   - PerChange: each change is a commit of its own.
//   - PerAuthor: changes of one author in a row share a commit, so nobody's change is
//     booked to somebody else and the order of events stays. A path that somebody else has
//     written in between therefore starts another commit.
//   - Batch: one commit.
//
// Within a commit the last change of a path counts; a Batch has an author only when all
// its changes have the same. A commit says no more than all its changes bear out: its
// signal is the least exact of theirs.
func groupChanges(granularity v1alpha1.Granularity, changes []Change) []group {
	var groups []group
	for _, change := range changes {
		last := len(groups) - 1
		if last >= 0 && shares(granularity, groups[last], change) {
			groups[last].changes = append(groups[last].changes, change)
			groups[last].author = common(groups[last].author, change.Author)
			continue
		}
		groups = append(groups, group{author: change.Author, changes: []Change{change}})
	}
	return groups
}

// groupFound divides what a comparison has found, which has no order, into commits: one for each author, or, with Batch,
// one.
func groupFound(granularity v1alpha1.Granularity, changes []Change) []group {
	if granularity == v1alpha1.GranularityBatch {
		return groupChanges(granularity, changes)
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Author.Username, b.Author.Username), strings.Compare(a.Author.ImpersonatedBy, b.Author.ImpersonatedBy))
	})
	return groupChanges(v1alpha1.GranularityPerAuthor, changes)
}

func shares(granularity v1alpha1.Granularity, g group, change Change) bool {
	switch granularity {
	case v1alpha1.GranularityPerChange:
		return false
	case v1alpha1.GranularityBatch:
		return true
	default:
		return sameAuthor(g.author, change.Author)
	}
}

// sameAuthor says whether a commit can have both authors, so that it says of neither what is
// true of the other only. The groups that a user was in at the time do not count, nor does
// which signal told of the user.
func sameAuthor(a, b attribution.Author) bool {
	if a.Known() && b.Known() {
		a.Signal, b.Signal = "", ""
	}
	a.Signal, b.Signal = cmp.Or(a.Signal, attribution.Unknown), cmp.Or(b.Signal, attribution.Unknown)
	a.Groups, b.Groups = nil, nil
	return reflect.DeepEqual(a, b)
}

// common is what can be said of the changes of both authors: nothing if they differ.
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
