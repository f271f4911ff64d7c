// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const (
	autoApplied        = v1alpha1.SyncStateAutoApplied
	applied            = v1alpha1.SyncStateApplied
	pending            = v1alpha1.SyncStatePending
	inProgress         = v1alpha1.SyncStateInProgress
	completed          = v1alpha1.SyncStateCompleted
	conflicted         = v1alpha1.SyncStateConflicted
	failed             = v1alpha1.SyncStateFailed
	retrying           = v1alpha1.SyncStateRetrying
	manualIntervention = v1alpha1.SyncStateManualIntervention
	dismissed          = v1alpha1.SyncStateDismissed
	superseded         = v1alpha1.SyncStateSuperseded

	catalog     = v1alpha1.SyncTypeCatalog
	environment = v1alpha1.SyncTypeEnvironment
	dependency  = v1alpha1.SyncTypeDependency
)

// stateChange is a change from one state to another. The state before creation is empty.
type stateChange struct{ from, to v1alpha1.SyncState }

// documentedTransitions are the documented transitions, with whether the server makes them without a request.
func documentedTransitions() map[v1alpha1.SyncType]map[stateChange]bool {
	return map[v1alpha1.SyncType]map[stateChange]bool{
		catalog: {
			{"", autoApplied}: true, {"", applied}: false, {"", failed}: true,
			{autoApplied, dismissed}: false, {applied, dismissed}: false,
			{failed, retrying}: true, {failed, manualIntervention}: true,
			{retrying, autoApplied}: true, {retrying, applied}: true, {retrying, failed}: true,
			{manualIntervention, retrying}: false, {manualIntervention, dismissed}: false,
		},
		environment: {
			{"", pending}:           true,
			{pending, inProgress}:   true,
			{pending, superseded}:   true,
			{inProgress, completed}: true, {inProgress, failed}: true, {inProgress, conflicted}: true,
			{conflicted, retrying}: false, {conflicted, superseded}: true,
			{failed, retrying}: true, {failed, manualIntervention}: true, {failed, superseded}: true,
			{retrying, inProgress}: true, {retrying, failed}: true, {retrying, superseded}: true,
			{manualIntervention, retrying}: false, {manualIntervention, dismissed}: false, {manualIntervention, superseded}: true,
		},
		dependency: {
			{"", pending}:           true,
			{pending, inProgress}:   true,
			{pending, dismissed}:    false,
			{pending, superseded}:   true,
			{inProgress, completed}: true, {inProgress, failed}: true,
			{failed, retrying}: true, {failed, manualIntervention}: true, {failed, superseded}: true,
			{retrying, inProgress}: true, {retrying, superseded}: true,
			{manualIntervention, retrying}: false, {manualIntervention, dismissed}: false, {manualIntervention, superseded}: true,
		},
	}
}

// everyState returns all states, including one that does not exist.
func everyState() []v1alpha1.SyncState {
	return []v1alpha1.SyncState{
		autoApplied, applied, pending, inProgress, completed, conflicted, failed, retrying, manualIntervention, dismissed, superseded,
		"Sleeping", "",
	}
}

var (
	detected = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)
	began    = detected.Add(30 * time.Second)
	later    = began.Add(time.Minute)
)

func spec(of v1alpha1.SyncType) v1alpha1.SyncStatusSpec {
	kind := v1alpha1.SubjectEnvironment
	if of == catalog {
		kind = v1alpha1.SubjectAppCatalog
	}
	return v1alpha1.SyncStatusSpec{Type: of, Subject: v1alpha1.SyncSubject{Kind: kind, Name: "shop", UID: "1234"}, Batch: "b1"}
}

// stepTo returns a step with all fields that the state requires. A state without an actor gets none.
func stepTo(state v1alpha1.SyncState, by string, at time.Time) syncstatus.Step {
	step := syncstatus.Step{To: state, By: by, At: at}
	if state == failed || state == conflicted {
		step.Failure = &syncstatus.Failure{Reason: "SourceNotFound", Message: "the namespace production does not exist"}
	}
	return step
}

func create(of v1alpha1.SyncType, first syncstatus.Step) (*v1alpha1.SyncStatus, error) {
	return syncstatus.New(syncstatus.Creation{Namespace: "teams", Spec: spec(of), DetectedAt: detected, First: first})
}

// in returns a record of a type in a state.
func in(of v1alpha1.SyncType, state v1alpha1.SyncState, automatic bool) *v1alpha1.SyncStatus {
	return &v1alpha1.SyncStatus{Spec: spec(of), Status: v1alpha1.SyncRecord{State: state, AutoTriggered: automatic}}
}

func TestTransitions(t *testing.T) {
	for of, promised := range documentedTransitions() {
		for _, from := range everyState() {
			for _, to := range everyState() {
				alone, known := promised[stateChange{from, to}]
				// A record that no user has requested has no actor.
				withActor := known && (from != "" || to != autoApplied)
				if got := allows(of, from, to, "jane"); got != withActor {
					t.Errorf("%s, %q to %q by a user: %v", of, from, to, got)
				}
				if got := allows(of, from, to, ""); got != (known && alone) {
					t.Errorf("%s, %q to %q without a request: %v", of, from, to, got)
				}
				if from == "" {
					continue
				}
				err := syncstatus.CheckTransition(of, from, to)
				if (err == nil) != known {
					t.Errorf("%s, %q to %q: %v", of, from, to, err)
				}
				if slices.Contains(syncstatus.NextStates(of, from), to) != known {
					t.Errorf("%s: %q is followed by %v", of, from, syncstatus.NextStates(of, from))
				}
			}
		}
	}
}

// allows reports whether a record accepts a step, automatic or not.
func allows(of v1alpha1.SyncType, from, to v1alpha1.SyncState, by string) bool {
	step := stepTo(to, by, later)
	if from == "" {
		_, err := create(of, step)
		return err == nil
	}
	for _, automatic := range []bool{true, false} {
		record := in(of, from, automatic)
		before := record.DeepCopy()
		moved, err := syncstatus.Move(record, step)
		if !cmp.Equal(before, record) {
			return false
		}
		if err == nil {
			return moved.Status.State == to
		}
	}
	return false
}

func TestStates(t *testing.T) {
	for of, transitions := range documentedTransitions() {
		want := map[v1alpha1.SyncState]bool{}
		for way := range transitions {
			want[way.to] = true
		}
		for _, state := range everyState() {
			if got := slices.Contains(syncstatus.States(of), state); got != want[state] {
				t.Errorf("%s has %s: %v", of, state, got)
			}
			_, first := transitions[stateChange{"", state}]
			if got := slices.Contains(syncstatus.InitialStates(of), state); got != first {
				t.Errorf("%s may be created as %s: %v", of, state, got)
			}
		}
	}
	if got := syncstatus.States("Pipeline"); len(got) > 0 {
		t.Errorf("an unknown type has the states %v", got)
	}
}

func TestEndedAndSettled(t *testing.T) {
	tests := map[v1alpha1.SyncState]struct{ ended, settled bool }{
		autoApplied: {false, true}, applied: {false, true}, pending: {false, false}, inProgress: {false, false},
		completed: {true, true}, conflicted: {false, false}, failed: {false, false}, retrying: {false, false},
		manualIntervention: {false, false}, dismissed: {true, true}, superseded: {true, true},
	}
	for _, of := range []v1alpha1.SyncType{catalog, environment, dependency} {
		for _, state := range syncstatus.States(of) {
			record := in(of, state, true)
			if got := syncstatus.Ended(record); got != tests[state].ended {
				t.Errorf("%s %s: ended %v", of, state, got)
			}
			if got := syncstatus.Settled(record); got != tests[state].settled {
				t.Errorf("%s %s: settled %v", of, state, got)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	move := func(record *v1alpha1.SyncStatus, step syncstatus.Step) error {
		_, err := syncstatus.Move(record, step)
		return err
	}
	start := func(of v1alpha1.SyncType, step syncstatus.Step) error {
		_, err := create(of, step)
		return err
	}
	about := func(change func(*v1alpha1.SyncStatusSpec)) error {
		b := syncstatus.Creation{Spec: spec(catalog), DetectedAt: detected, First: stepTo(autoApplied, "", began)}
		change(&b.Spec)
		_, err := syncstatus.New(b)
		return err
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"a transition that does not exist", move(in(catalog, autoApplied, true), stepTo(retrying, "jane", later)), "only Dismissed"},
		{
			"a state with several next states", move(in(environment, inProgress, true), stepTo(dismissed, "jane", later)),
			"only Completed, Conflicted or Failed",
		},
		{"a step after a final state", move(in(catalog, dismissed, true), stepTo(retrying, "jane", later)), "nothing follows Dismissed"},
		{"the same state again", move(in(dependency, pending, true), stepTo(pending, "", later)), "cannot become Pending"},
		{"dismissed without a user", move(in(catalog, applied, false), stepTo(dismissed, "", later)), "needs the user"},
		{"a failure without a reason", move(in(catalog, retrying, true), syncstatus.Step{To: failed, At: later}), "needs a reason and a message"},
		{"a success with a failure", move(in(environment, inProgress, true), syncstatus.Step{
			To: completed, At: later, Failure: &syncstatus.Failure{Reason: "Quota", Message: "no more Pods"},
		}), "is no failure, but one is given: no more Pods"},
		{"AutoApplied of a requested record", move(in(catalog, retrying, false), stepTo(autoApplied, "", later)), "began as the other"},
		{"Applied of an automatic record", move(in(catalog, retrying, true), stepTo(applied, "", later)), "began as the other"},
		{"a state that is not initial", start(environment, stepTo(inProgress, "", began)), "only as Pending"},
		{
			"a state that is not one of several initial ones", start(catalog, stepTo(retrying, "", began)), "only as Applied, AutoApplied or Failed",
		},
		{"Applied without a user", start(catalog, stepTo(applied, "", began)), "needs the user"},
		{"AutoApplied with a user", start(catalog, stepTo(autoApplied, "jane", began)), "what jane asked for is Applied"},
		{"an unknown type", about(func(s *v1alpha1.SyncStatusSpec) { s.Type = "Pipeline" }), `no type "Pipeline"`},
		{"a subject of another kind", about(func(s *v1alpha1.SyncStatusSpec) { s.Type = environment }), "is an Environment"},
		{"a subject without a uid", about(func(s *v1alpha1.SyncStatusSpec) { s.Subject.UID = "" }), "the uid of the subject"},
		{"no batch", about(func(s *v1alpha1.SyncStatusSpec) { s.Batch = "" }), "the batch must be set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, test.err)
			}
		})
	}
	for i, hint := range map[int]string{
		1: "Dismissed follows ManualIntervention",
		2: "Retrying follows Failed or ManualIntervention",
		3: "nothing leads to Pending",
	} {
		if refused := (*syncstatus.TransitionError)(nil); !errors.As(tests[i].err, &refused) || refused.Hint() != hint {
			t.Errorf("%s: %v, want the hint: %s", tests[i].name, tests[i].err, hint)
		}
	}
	var refused *syncstatus.TransitionError
	if !errors.As(tests[0].err, &refused) || refused.From != autoApplied || refused.To != retrying {
		t.Errorf("the error does not have the transition: %v", tests[0].err)
	}
}
