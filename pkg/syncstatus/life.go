// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// stage is a state in the life of a record.
type stage struct {
	// first says that a new record may have the state.
	first bool
	// next are the states that may follow, and at whose word.
	next map[v1alpha1.SyncState]word
}

// word is who may move a record.
type word int

const (
	// anybody is the server by itself, or a user who asks for it.
	anybody word = iota
	// aUser is someone who asks for it; the server never does it by itself.
	aUser
	// asItBegan is anybody, to AutoApplied if the server had begun by itself and to Applied if a user had.
	asItBegan
)

// lives are the states of each type of records. A state that nothing follows is the end.
var lives = map[v1alpha1.SyncType]map[v1alpha1.SyncState]stage{
	v1alpha1.SyncTypeCatalog: {
		v1alpha1.SyncStateAutoApplied: {first: true, next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateDismissed: aUser,
		}},
		v1alpha1.SyncStateApplied: {first: true, next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateDismissed: aUser,
		}},
		v1alpha1.SyncStateFailed: {first: true, next: failed},
		v1alpha1.SyncStateRetrying: {next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateAutoApplied: asItBegan,
			v1alpha1.SyncStateApplied:     asItBegan,
			v1alpha1.SyncStateFailed:      anybody,
		}},
		v1alpha1.SyncStateManualIntervention: {next: needsAUser},
		v1alpha1.SyncStateDismissed:          {},
	},
	v1alpha1.SyncTypeEnvironment: {
		v1alpha1.SyncStatePending: {first: true, next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateInProgress: anybody,
			v1alpha1.SyncStateSuperseded: anybody,
		}},
		v1alpha1.SyncStateInProgress: {next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateCompleted:  anybody,
			v1alpha1.SyncStateFailed:     anybody,
			v1alpha1.SyncStateConflicted: anybody,
		}},
		v1alpha1.SyncStateConflicted: {next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateRetrying:   aUser,
			v1alpha1.SyncStateSuperseded: anybody,
		}},
		v1alpha1.SyncStateFailed: {next: orOvertaken(failed)},
		v1alpha1.SyncStateRetrying: {next: orOvertaken(map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateInProgress: anybody,
			v1alpha1.SyncStateFailed:     anybody,
		})},
		v1alpha1.SyncStateManualIntervention: {next: orOvertaken(needsAUser)},
		v1alpha1.SyncStateCompleted:          {},
		v1alpha1.SyncStateSuperseded:         {},
		v1alpha1.SyncStateDismissed:          {},
	},
	v1alpha1.SyncTypeDependency: {
		v1alpha1.SyncStatePending: {first: true, next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateInProgress: anybody,
			v1alpha1.SyncStateDismissed:  aUser,
			// It is not wanted any more: what had changed was changed back, or came with a run of the other type.
			v1alpha1.SyncStateSuperseded: anybody,
		}},
		v1alpha1.SyncStateInProgress: {next: map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateCompleted: anybody,
			v1alpha1.SyncStateFailed:    anybody,
		}},
		v1alpha1.SyncStateFailed: {next: orOvertaken(failed)},
		v1alpha1.SyncStateRetrying: {next: orOvertaken(map[v1alpha1.SyncState]word{
			v1alpha1.SyncStateInProgress: anybody,
		})},
		v1alpha1.SyncStateManualIntervention: {next: orOvertaken(needsAUser)},
		v1alpha1.SyncStateCompleted:          {},
		v1alpha1.SyncStateSuperseded:         {},
		v1alpha1.SyncStateDismissed:          {},
	},
}

var (
	// failed is what follows Failed: another attempt while there is one left, and a user's turn then.
	failed = map[v1alpha1.SyncState]word{
		v1alpha1.SyncStateRetrying:           anybody,
		v1alpha1.SyncStateManualIntervention: anybody,
	}
	// needsAUser is what follows ManualIntervention.
	needsAUser = map[v1alpha1.SyncState]word{
		v1alpha1.SyncStateRetrying:  aUser,
		v1alpha1.SyncStateDismissed: aUser,
	}
)

// orOvertaken adds that a newer run has done, or does, what is to be tried again: the last thing to do about a record of a run
// is never to bring back what was wanted earlier.
func orOvertaken(next map[v1alpha1.SyncState]word) map[v1alpha1.SyncState]word {
	next = maps.Clone(next)
	next[v1alpha1.SyncStateSuperseded] = anybody
	return next
}

// States returns the states of a type of records, in alphabetical order; none of an unknown type.
func States(of v1alpha1.SyncType) []v1alpha1.SyncState {
	return slices.Sorted(maps.Keys(lives[of]))
}

// Firsts returns the states that a new record of a type may have, in alphabetical order.
func Firsts(of v1alpha1.SyncType) []v1alpha1.SyncState {
	return slices.DeleteFunc(States(of), func(state v1alpha1.SyncState) bool { return !lives[of][state].first })
}

// Nexts returns the states that may follow a state, in alphabetical order; none when it is the end.
func Nexts(of v1alpha1.SyncType, state v1alpha1.SyncState) []v1alpha1.SyncState {
	return slices.Sorted(maps.Keys(lives[of][state].next))
}

// Ended says whether a record has come to its end.
func Ended(record *v1alpha1.SyncStatus) bool {
	return len(lives[record.Spec.Type][record.Status.State].next) == 0
}

// Settled says whether nobody and nothing has to do anything more about a record: if anything, someone puts it aside.
func Settled(record *v1alpha1.SyncStatus) bool {
	for next := range lives[record.Spec.Type][record.Status.State].next {
		if next != v1alpha1.SyncStateDismissed {
			return false
		}
	}
	return true
}

// TransitionError says that a record cannot go from a state to another. It is the caller's mistake, or it has read the
// record before somebody else moved it.
type TransitionError struct {
	Type     v1alpha1.SyncType
	From, To v1alpha1.SyncState
}

// Error says what is possible.
func (e *TransitionError) Error() string {
	problem := fmt.Sprintf("a record of type %s that is %s cannot become %s", e.Type, e.From, e.To)
	next := Nexts(e.Type, e.From)
	if len(next) == 0 {
		return problem + ": nothing follows " + string(e.From)
	}
	return problem + ", only " + join(next)
}

// Ways says from which states a record can go where this one could not.
func (e *TransitionError) Ways() string {
	from := slices.DeleteFunc(States(e.Type), func(state v1alpha1.SyncState) bool {
		_, ok := lives[e.Type][state].next[e.To]
		return !ok
	})
	if len(from) == 0 {
		return fmt.Sprintf("nothing leads to %s", e.To)
	}
	return fmt.Sprintf("%s follows %s", e.To, join(from))
}

// CheckTransition says why a record of a type cannot go from a state to another; with a *TransitionError if it cannot.
func CheckTransition(of v1alpha1.SyncType, from, to v1alpha1.SyncState) error {
	if _, ok := lives[of][from].next[to]; !ok {
		return &TransitionError{Type: of, From: from, To: to}
	}
	return nil
}

// join lists states as a sentence does.
func join(states []v1alpha1.SyncState) string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = string(state)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}
