// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

func stamp(at time.Time) *metav1.Time {
	seconds := metav1.NewTime(at.Truncate(time.Second))
	return &seconds
}

// walk creates a record and moves it through steps.
func walk(t *testing.T, of v1alpha1.SyncType, steps ...syncstatus.Step) v1alpha1.SyncRecord {
	t.Helper()
	record, err := create(of, steps[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps[1:] {
		if record, err = syncstatus.Move(record, step); err != nil {
			t.Fatal(err)
		}
	}
	return record.Status
}

// TestRequesterIsClearedAtTheEnd checks that the groups of a user are stored only as long as permissions are checked.
func TestRequesterIsClearedAtTheEnd(t *testing.T) {
	record, err := create(environment, stepTo(pending, "jane", began))
	if err != nil {
		t.Fatal(err)
	}
	record.Status.RequestedBy = &v1alpha1.AutomatedBy{Username: "jane", Groups: []string{"shop-team"}}
	for _, step := range []syncstatus.Step{
		stepTo(inProgress, "", later), stepTo(failed, "", later), stepTo(retrying, "", later),
		stepTo(inProgress, "", later), stepTo(completed, "", later),
	} {
		moved, err := syncstatus.Move(record, step)
		if err != nil {
			t.Fatal(err)
		}
		if kept := moved.Status.RequestedBy != nil; kept == syncstatus.Ended(moved) {
			t.Errorf("%s: requested by %+v", step.To, moved.Status.RequestedBy)
		}
		record = moved
	}
}

func TestFieldsOfStates(t *testing.T) {
	problem := func(at time.Time) *v1alpha1.SyncError {
		return &v1alpha1.SyncError{Reason: "SourceNotFound", Message: "the namespace production does not exist", At: *stamp(at)}
	}
	last := later.Add(time.Hour)
	tests := []struct {
		name  string
		of    v1alpha1.SyncType
		steps []syncstatus.Step
		want  v1alpha1.SyncRecord
	}{
		{
			name: "the source changed", of: catalog, steps: []syncstatus.Step{stepTo(autoApplied, "", began)},
			want: v1alpha1.SyncRecord{State: autoApplied, AutoTriggered: true, StartedAt: stamp(began), Attempts: 1},
		},
		{
			name: "an edit, dismissed by another user", of: catalog,
			steps: []syncstatus.Step{stepTo(applied, "jane", began), stepTo(dismissed, "joe", later)},
			want: v1alpha1.SyncRecord{
				State: dismissed, Actor: "jane", StartedAt: stamp(began), Attempts: 1, ResolvedAt: stamp(later), ResolvedBy: "joe",
			},
		},
		{
			name: "a failure that was resolved", of: catalog,
			steps: []syncstatus.Step{stepTo(failed, "", began), stepTo(retrying, "", later), stepTo(autoApplied, "", last)},
			want:  v1alpha1.SyncRecord{State: autoApplied, AutoTriggered: true, StartedAt: stamp(began), Attempts: 2},
		},
		{
			name: "an edit that failed repeatedly", of: catalog,
			steps: []syncstatus.Step{
				stepTo(failed, "jane", began), stepTo(retrying, "", later), stepTo(failed, "", last), stepTo(manualIntervention, "", last),
			},
			want: v1alpha1.SyncRecord{State: manualIntervention, Actor: "jane", StartedAt: stamp(began), Attempts: 2, Error: problem(last)},
		},
		{
			name: "a pending run", of: environment, steps: []syncstatus.Step{stepTo(pending, "jane", began)},
			want: v1alpha1.SyncRecord{State: pending, Actor: "jane"},
		},
		{
			name: "a run that never started", of: environment,
			steps: []syncstatus.Step{stepTo(pending, "", began), stepTo(superseded, "", later)},
			want:  v1alpha1.SyncRecord{State: superseded, AutoTriggered: true, ResolvedAt: stamp(later)},
		},
		{
			name: "a run", of: environment,
			steps: []syncstatus.Step{stepTo(pending, "jane", began), stepTo(inProgress, "", later), stepTo(completed, "", last)},
			want:  v1alpha1.SyncRecord{State: completed, Actor: "jane", StartedAt: stamp(later), Attempts: 1, ResolvedAt: stamp(last)},
		},
		{
			name: "a conflict that is being resolved", of: environment,
			steps: []syncstatus.Step{
				stepTo(pending, "", began), stepTo(inProgress, "", later), stepTo(conflicted, "", later), stepTo(retrying, "jane", last),
			},
			want: v1alpha1.SyncRecord{State: retrying, AutoTriggered: true, StartedAt: stamp(later), Attempts: 2, Error: problem(later)},
		},
		{
			name: "dependencies that are obsolete", of: dependency,
			steps: []syncstatus.Step{stepTo(pending, "", began), stepTo(dismissed, "joe", later)},
			want:  v1alpha1.SyncRecord{State: dismissed, AutoTriggered: true, ResolvedAt: stamp(later), ResolvedBy: "joe"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.want.DetectedAt = *stamp(detected)
			if diff := cmp.Diff(test.want, walk(t, test.of, test.steps...)); diff != "" {
				t.Errorf("wrong record (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManualInterventionHasItsFailure has a failure that differs from the previous one.
func TestManualInterventionHasItsFailure(t *testing.T) {
	step := syncstatus.Step{
		To: manualIntervention, At: later, Failure: &syncstatus.Failure{Reason: "PermissionLost", Message: "jane may no longer read production"},
	}
	got := walk(t, catalog, stepTo(failed, "jane", began), step).Error
	want := &v1alpha1.SyncError{Reason: "PermissionLost", Message: "jane may no longer read production", At: *stamp(later)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong error (-want +got):\n%s", diff)
	}
}

func TestRetriedRunsStartWithoutProgress(t *testing.T) {
	record := in(environment, retrying, true)
	record.Status.Progress = &v1alpha1.Progress{Done: 3, Total: 10}
	record.Status.Failures, record.Status.Warnings = []v1alpha1.ObjectFailure{{Name: "app-config"}}, []string{"not copied"}
	moved, err := syncstatus.Move(record, stepTo(inProgress, "", later))
	if err != nil {
		t.Fatal(err)
	}
	if moved.Status.Progress != nil {
		t.Errorf("the progress of the last attempt is not cleared: %v", moved.Status.Progress)
	}
	if moved.Status.Failures != nil || moved.Status.Warnings != nil {
		t.Errorf("failures of the last attempt are not cleared: %v, %v", moved.Status.Failures, moved.Status.Warnings)
	}
}

// TestResume checks that a resumed run is another attempt without the failures of the previous one.
func TestResume(t *testing.T) {
	record := in(environment, inProgress, true)
	record.Status.Attempts, record.Status.Progress = 1, &v1alpha1.Progress{Done: 3, Total: 10}
	record.Status.Failures = []v1alpha1.ObjectFailure{{Name: "app-config"}}
	resumed, err := syncstatus.Resume(record)
	if err != nil {
		t.Fatal(err)
	}
	if status := resumed.Status; status.State != inProgress || status.Attempts != 2 || status.Progress != nil || status.Failures != nil {
		t.Errorf("the resumed record is %+v", status)
	}
	if _, err := syncstatus.Resume(in(environment, retrying, true)); err == nil || !strings.Contains(err.Error(), "it is Retrying") {
		t.Errorf("a record that is not InProgress was resumed: %v", err)
	}
}

func TestClaim(t *testing.T) {
	claimed, err := syncstatus.Claim(in(dependency, pending, true), "jane")
	if err != nil || claimed.Status.Actor != "jane" || claimed.Status.AutoTriggered {
		t.Fatalf("%v: %+v", err, claimed)
	}
	if again, err := syncstatus.Claim(claimed, "joe"); err != nil || again.Status.Actor != "jane" {
		t.Errorf("%v: %+v", err, again)
	}
	for name, claim := range map[string]func() (*v1alpha1.SyncStatus, error){
		"without a user": func() (*v1alpha1.SyncStatus, error) { return syncstatus.Claim(in(dependency, pending, true), "") },
		"in progress": func() (*v1alpha1.SyncStatus, error) {
			return syncstatus.Claim(in(dependency, inProgress, true), "jane")
		},
		"completed": func() (*v1alpha1.SyncStatus, error) { return syncstatus.Claim(in(dependency, completed, true), "jane") },
	} {
		if _, err := claim(); err == nil {
			t.Errorf("%s: a record was claimed", name)
		}
	}
}

// TestRandomWalks checks the invariants of random sequences of steps: subject, actor and detection time do not change; a record has an end
// time exactly if it has ended, and an error exactly while its state has one; attempts never decrease; the summary is never empty.
func TestRandomWalks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		of := []v1alpha1.SyncType{catalog, environment, dependency}[random.IntN(3)]
		actor := []string{"", "jane"}[random.IntN(2)]
		firsts := syncstatus.InitialStates(of)
		first := stepTo(firsts[random.IntN(len(firsts))], actor, began)
		record, err := create(of, first)
		if err != nil {
			continue
		}
		at := began
		for range 20 {
			checkInvariants(t, of, actor, record)
			states := everyState()
			at = at.Add(time.Duration(random.IntN(100)) * time.Second)
			step := stepTo(states[random.IntN(len(states))], []string{"", "joe"}[random.IntN(2)], at)
			before := record.DeepCopy()
			moved, err := syncstatus.Move(record, step)
			if !equality.Semantic.DeepEqual(before, record) {
				t.Fatalf("Move has modified its argument:\n%s", cmp.Diff(before, record))
			}
			if err != nil {
				continue
			}
			if moved.Status.Attempts < record.Status.Attempts || moved.Status.Attempts > record.Status.Attempts+1 {
				t.Errorf("%s to %s: attempts went from %d to %d", record.Status.State, step.To, record.Status.Attempts, moved.Status.Attempts)
			}
			record = moved
		}
	}
}

func checkInvariants(t *testing.T, of v1alpha1.SyncType, actor string, record *v1alpha1.SyncStatus) {
	t.Helper()
	status := record.Status
	if record.Spec != spec(of) || status.Actor != actor || status.AutoTriggered != (actor == "") || !status.DetectedAt.Equal(stamp(detected)) {
		t.Errorf("the subject or the actor has changed: %+v", record)
	}
	if ended := syncstatus.Ended(record); ended != (status.ResolvedAt != nil) || !ended && status.ResolvedBy != "" {
		t.Errorf("%s, resolved at %v by %q", status.State, status.ResolvedAt, status.ResolvedBy)
	}
	if (status.StartedAt != nil) != (status.Attempts > 0) {
		t.Errorf("%s, started at %v, %d attempts", status.State, status.StartedAt, status.Attempts)
	}
	switch status.State {
	case failed, conflicted, manualIntervention, retrying:
		if status.Error == nil {
			t.Errorf("%s without a reason", status.State)
		}
	case autoApplied, applied, completed, pending:
		if status.Error != nil {
			t.Errorf("%s with an error: %v", status.State, status.Error)
		}
	default:
	}
	if syncstatus.Summary(record) == "" {
		t.Errorf("%s has no summary", status.State)
	}
}
