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

// stateRules are the rules of one state of a type of records.
type stateRules struct {
	// initial is true if a new record may have the state.
	initial bool
	// next are the states that may follow, and who may request them.
	next map[v1alpha1.SyncState]requirement
}

// requirement is who may request a transition.
type requirement int

const (
	// byAnyone allows the server without a request, and users.
	byAnyone requirement = iota
	// byUser allows users only.
	byUser
	// asCreated allows AutoApplied for a record that the server created without a request, and Applied for one that a user requested.
	asCreated
)

// states are the states of each type of records. A state without next states is final.
var states = map[v1alpha1.SyncType]map[v1alpha1.SyncState]stateRules{
	v1alpha1.SyncTypeCatalog: {
		v1alpha1.SyncStateAutoApplied: {initial: true, next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateDismissed: byUser,
		}},
		v1alpha1.SyncStateApplied: {initial: true, next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateDismissed: byUser,
		}},
		v1alpha1.SyncStateFailed: {initial: true, next: afterFailed},
		v1alpha1.SyncStateRetrying: {next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateAutoApplied: asCreated,
			v1alpha1.SyncStateApplied:     asCreated,
			v1alpha1.SyncStateFailed:      byAnyone,
		}},
		v1alpha1.SyncStateManualIntervention: {next: afterManualIntervention},
		v1alpha1.SyncStateDismissed:          {},
	},
	v1alpha1.SyncTypeEnvironment: {
		v1alpha1.SyncStatePending: {initial: true, next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateInProgress: byAnyone,
			v1alpha1.SyncStateSuperseded: byAnyone,
		}},
		v1alpha1.SyncStateInProgress: {next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateCompleted:  byAnyone,
			v1alpha1.SyncStateFailed:     byAnyone,
			v1alpha1.SyncStateConflicted: byAnyone,
		}},
		v1alpha1.SyncStateConflicted: {next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateRetrying:   byUser,
			v1alpha1.SyncStateSuperseded: byAnyone,
		}},
		v1alpha1.SyncStateFailed: {next: orSuperseded(afterFailed)},
		v1alpha1.SyncStateRetrying: {next: orSuperseded(map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateInProgress: byAnyone,
			v1alpha1.SyncStateFailed:     byAnyone,
		})},
		v1alpha1.SyncStateManualIntervention: {next: orSuperseded(afterManualIntervention)},
		v1alpha1.SyncStateCompleted:          {},
		v1alpha1.SyncStateSuperseded:         {},
		v1alpha1.SyncStateDismissed:          {},
	},
	v1alpha1.SyncTypeDependency: {
		v1alpha1.SyncStatePending: {initial: true, next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateInProgress: byAnyone,
			v1alpha1.SyncStateDismissed:  byUser,
			// It is obsolete: the change was reverted, or was synced by a run of the other type.
			v1alpha1.SyncStateSuperseded: byAnyone,
		}},
		v1alpha1.SyncStateInProgress: {next: map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateCompleted: byAnyone,
			v1alpha1.SyncStateFailed:    byAnyone,
		}},
		v1alpha1.SyncStateFailed: {next: orSuperseded(afterFailed)},
		v1alpha1.SyncStateRetrying: {next: orSuperseded(map[v1alpha1.SyncState]requirement{
			v1alpha1.SyncStateInProgress: byAnyone,
		})},
		v1alpha1.SyncStateManualIntervention: {next: orSuperseded(afterManualIntervention)},
		v1alpha1.SyncStateCompleted:          {},
		v1alpha1.SyncStateSuperseded:         {},
		v1alpha1.SyncStateDismissed:          {},
	},
}

var (
	// afterFailed are the states after Failed: another attempt, or ManualIntervention if no attempts are left.
	afterFailed = map[v1alpha1.SyncState]requirement{
		v1alpha1.SyncStateRetrying:           byAnyone,
		v1alpha1.SyncStateManualIntervention: byAnyone,
	}
	// afterManualIntervention are the states after ManualIntervention.
	afterManualIntervention = map[v1alpha1.SyncState]requirement{
		v1alpha1.SyncStateRetrying:  byUser,
		v1alpha1.SyncStateDismissed: byUser,
	}
)

// orSuperseded adds Superseded, for a record whose changes a newer run has synced or is syncing. A retry must not revert the result of a
// newer run.
func orSuperseded(next map[v1alpha1.SyncState]requirement) map[v1alpha1.SyncState]requirement {
	next = maps.Clone(next)
	next[v1alpha1.SyncStateSuperseded] = byAnyone
	return next
}

// States returns the states of a type of records in alphabetical order. An unknown type has none.
func States(of v1alpha1.SyncType) []v1alpha1.SyncState {
	return slices.Sorted(maps.Keys(states[of]))
}

// InitialStates returns the states that a new record of a type may have, in alphabetical order.
func InitialStates(of v1alpha1.SyncType) []v1alpha1.SyncState {
	return slices.DeleteFunc(States(of), func(state v1alpha1.SyncState) bool { return !states[of][state].initial })
}

// nextStates returns the states that may follow a state, in alphabetical order. A final state has none.
func nextStates(of v1alpha1.SyncType, state v1alpha1.SyncState) []v1alpha1.SyncState {
	return slices.Sorted(maps.Keys(states[of][state].next))
}

// Ended reports whether the state of a record is final.
func Ended(record *v1alpha1.SyncStatus) bool {
	return len(states[record.Spec.Type][record.Status.State].next) == 0
}

// Settled reports whether a record needs no further action. It may still be dismissed.
func Settled(record *v1alpha1.SyncStatus) bool {
	for next := range states[record.Spec.Type][record.Status.State].next {
		if next != v1alpha1.SyncStateDismissed {
			return false
		}
	}
	return true
}

// TransitionError is returned for a transition that does not exist. Either the caller is wrong, or it has an outdated record.
type TransitionError struct {
	Type     v1alpha1.SyncType
	From, To v1alpha1.SyncState
}

// Error returns a message with the possible transitions.
func (e *TransitionError) Error() string {
	problem := fmt.Sprintf("a record of type %s that is %s cannot become %s", e.Type, e.From, e.To)
	next := nextStates(e.Type, e.From)
	if len(next) == 0 {
		return problem + ": nothing follows " + string(e.From)
	}
	return problem + ", only " + join(next)
}

// Hint returns from which states the requested state can be reached.
func (e *TransitionError) Hint() string {
	from := slices.DeleteFunc(States(e.Type), func(state v1alpha1.SyncState) bool {
		_, ok := states[e.Type][state].next[e.To]
		return !ok
	})
	if len(from) == 0 {
		return fmt.Sprintf("nothing leads to %s", e.To)
	}
	return fmt.Sprintf("%s follows %s", e.To, join(from))
}

// CheckTransition returns a *TransitionError if a record of a type cannot change from one state to another.
func CheckTransition(of v1alpha1.SyncType, from, to v1alpha1.SyncState) error {
	if _, ok := states[of][from].next[to]; !ok {
		return &TransitionError{Type: of, From: from, To: to}
	}
	return nil
}

// join joins states with commas and a final "or".
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
