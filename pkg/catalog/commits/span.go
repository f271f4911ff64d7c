// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/history"
)

// Span is the change of one object that a record is about: from one resourceVersion to another.
type Span struct {
	Object history.Object `json:"object"`
	// After is the resourceVersion of the previous record, From that of the first change that counts. Each may be empty. If
	// both are, the span begins with the creation of the object.
	After string `json:"after,omitempty"`
	From  string `json:"from,omitempty"`
	// To is the resourceVersion that is recorded. It is empty if the object was deleted.
	To string `json:"to,omitempty"`
}

// Match returns the entries of the span's object whose commits hold the change, the newest first.
func (s Span) Match(entries []Entry) []Entry {
	var matching []Entry
	for _, of := range byDestination(entries) {
		if s.To == "" {
			matching = append(matching, s.deletion(of)...)
		} else {
			matching = append(matching, s.change(of)...)
		}
	}
	slices.SortFunc(matching, func(a, b Entry) int { return b.Compare(a) })
	return matching
}

// byDestination groups entries by destination, the oldest first.
func byDestination(entries []Entry) map[types.NamespacedName][]Entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, Entry.Compare)
	out := map[types.NamespacedName][]Entry{}
	for _, entry := range sorted {
		out[entry.destination()] = append(out[entry.destination()], entry)
	}
	return out
}

// deletion returns the entries up to the one that removes the object; none as long as that does not exist.
func (s Span) deletion(of []Entry) []Entry {
	of = slices.DeleteFunc(of, func(entry Entry) bool { return !s.reachedBy(entry) })
	removal := slices.IndexFunc(of, func(entry Entry) bool { return entry.Removed })
	return s.sinceCreation(of[:removal+1])
}

// change returns the entries of an object that exists. A commit that removes its file only says that no rule selects the object
// any more.
func (s Span) change(of []Entry) []Entry {
	of = slices.DeleteFunc(of, func(entry Entry) bool { return entry.Removed || !s.reachedBy(entry) })
	var within []Entry
	for _, entry := range of {
		repeated := len(within) > 0 && fromComparison(entry) && within[len(within)-1].Last == entry.Last
		if s.endsAfterStartOf(entry) && !repeated {
			within = append(within, entry)
		}
	}
	if len(within) > 0 {
		return s.sinceCreation(within)
	}
	// No branch of the destination had the change: the next comparison has added it.
	if next := slices.IndexFunc(of, fromComparison); next >= 0 {
		return of[next : next+1]
	}
	return nil
}

// fromComparison reports whether a commit comes from a comparison of a branch with the cluster.
func fromComparison(entry Entry) bool { return entry.First == "" }

// reachedBy reports whether the last change of an entry is not before the span.
func (s Span) reachedBy(entry Entry) bool {
	return (s.From == "" || compare(entry.Last, s.From) >= 0) && (s.After == "" || compare(entry.Last, s.After) > 0)
}

// endsAfterStartOf reports whether the first known change of an entry is not after the span.
func (s Span) endsAfterStartOf(entry Entry) bool {
	if fromComparison(entry) {
		return compare(entry.Last, s.To) <= 0
	}
	return compare(entry.First, s.To) <= 0
}

// sinceCreation drops the entries of an earlier object of the same name, if nothing else says where the span begins.
func (s Span) sinceCreation(of []Entry) []Entry {
	if s.After != "" || s.From != "" {
		return of
	}
	for i, entry := range slices.Backward(of) {
		if entry.Created {
			return of[i:]
		}
	}
	return of
}
