// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// Span is what a record tells of one object: how it has changed from one resourceVersion to another.
type Span struct {
	Object commitindex.Object `json:"object"`
	// After is the resourceVersion that was recorded before, From that of the first change which counts. Each may be empty;
	// when both are, all that became of the object since it was made is recorded.
	After string `json:"after,omitempty"`
	From  string `json:"from,omitempty"`
	// To is the resourceVersion that is recorded. It is empty when the object is gone.
	To string `json:"to,omitempty"`
}

// Held returns those of an object's landings whose commits hold what the span tells of, the newest first.
func (s Span) Held(landings []commitindex.Landing) []commitindex.Landing {
	var held []commitindex.Landing
	for _, of := range byDestination(landings) {
		if s.To == "" {
			held = append(held, s.gone(of)...)
		} else {
			held = append(held, s.changed(of)...)
		}
	}
	slices.SortFunc(held, func(a, b commitindex.Landing) int { return b.Compare(a) })
	return held
}

// byDestination divides landings, the oldest first.
func byDestination(landings []commitindex.Landing) map[types.NamespacedName][]commitindex.Landing {
	sorted := slices.Clone(landings)
	slices.SortFunc(sorted, commitindex.Landing.Compare)
	out := map[types.NamespacedName][]commitindex.Landing{}
	for _, one := range sorted {
		out[one.Commit.Destination] = append(out[one.Commit.Destination], one)
	}
	return out
}

// gone are the landings up to that of the removal; none while that has not landed.
func (s Span) gone(of []commitindex.Landing) []commitindex.Landing {
	of = slices.DeleteFunc(of, func(one commitindex.Landing) bool { return !s.reached(one) })
	removal := slices.IndexFunc(of, func(one commitindex.Landing) bool { return one.Removed })
	return s.sinceCreation(of[:removal+1])
}

// changed are the landings of an object that is there. That its file was removed says that nobody selects it any more.
func (s Span) changed(of []commitindex.Landing) []commitindex.Landing {
	of = slices.DeleteFunc(of, func(one commitindex.Landing) bool { return one.Removed || !s.reached(one) })
	var within []commitindex.Landing
	for _, one := range of {
		if again := len(within) > 0 && compared(one) && within[len(within)-1].Last == one.Last; s.begins(one) && !again {
			within = append(within, one)
		}
	}
	if len(within) > 0 {
		return s.sinceCreation(within)
	}
	// No branch of the destination had the change before: the next comparison has brought it.
	if next := slices.IndexFunc(of, compared); next >= 0 {
		return of[next : next+1]
	}
	return nil
}

// compared says whether a landing is what a comparison has found.
func compared(one commitindex.Landing) bool { return one.First == "" }

// reached says whether a landing holds a change that is not before the span.
func (s Span) reached(one commitindex.Landing) bool {
	return (s.From == "" || commitindex.Compare(one.Last, s.From) >= 0) && (s.After == "" || commitindex.Compare(one.Last, s.After) > 0)
}

// begins says whether a landing holds a change that is not after the span, as far as that is known.
func (s Span) begins(one commitindex.Landing) bool {
	if compared(one) {
		return commitindex.Compare(one.Last, s.To) <= 0
	}
	return commitindex.Compare(one.First, s.To) <= 0
}

// sinceCreation leaves out what was of another object of the name, when nothing else says where the span begins.
func (s Span) sinceCreation(of []commitindex.Landing) []commitindex.Landing {
	if s.After != "" || s.From != "" {
		return of
	}
	for i, one := range slices.Backward(of) {
		if one.Created {
			return of[i:]
		}
	}
	return of
}
