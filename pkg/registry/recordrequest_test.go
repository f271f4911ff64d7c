// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const (
	autoApplied        = v1alpha1.SyncStateAutoApplied
	failed             = v1alpha1.SyncStateFailed
	retrying           = v1alpha1.SyncStateRetrying
	manualIntervention = v1alpha1.SyncStateManualIntervention
	dismissed          = v1alpha1.SyncStateDismissed
)

// ways are the steps from the beginning of a catalog's record to each of its states.
var ways = map[v1alpha1.SyncState][]v1alpha1.SyncState{
	autoApplied:        {autoApplied},
	failed:             {failed},
	retrying:           {failed, retrying},
	manualIntervention: {failed, manualIntervention},
	dismissed:          {autoApplied, dismissed},
}

// inState stores a record of a catalog in a state, written step by step, as it must be.
func inState(t *testing.T, storage *registry.Storage, catalog *configbutler.AppCatalog, state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	t.Helper()
	var record *v1alpha1.SyncStatus
	for i, to := range ways[state] {
		step, err := syncstatus.Step{To: to, At: noon.Add(-time.Hour)}, error(nil)
		if to == failed {
			step.Failure = &syncstatus.Failure{Reason: "PatchDoesNotFit", Message: "spec.patches[0] does not fit"}
		}
		if to == dismissed {
			step.By = "joe"
		}
		if i == 0 {
			record, err = newRecord(catalog, "b1", step)
		} else {
			record, err = syncstatus.Move(record, step)
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			record.Status.WorkloadCount, record.Status.WorkloadNames = 1, []string{"api"}
		}
		if _, err := storage.Records.Write(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		record = storedRecord(t, storage, record.Name)
	}
	return record
}

// storedRecord is a record as it is stored.
func storedRecord(t *testing.T, storage *registry.Storage, name string) *v1alpha1.SyncStatus {
	t.Helper()
	obj, err := storage.Endpoints["syncstatuses"].(rest.Getter).Get(in(t), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	record := &v1alpha1.SyncStatus{}
	if err := v1alpha1.Convert_configbutler_SyncStatus_To_v1alpha1_SyncStatus(obj.(*configbutler.SyncStatus), record, nil); err != nil {
		t.Fatal(err)
	}
	return record
}

func dismissOf(ctx context.Context, storage *registry.Storage, name string, dryRun ...string) (configbutler.RequestOutcome, error) {
	answer, err := ask(ctx, storage, "syncstatuses/dismiss", name, &configbutler.Dismissal{}, dryRun...)
	if err != nil {
		return configbutler.RequestOutcome{}, err
	}
	return answer.Status, nil
}

func retryOf(ctx context.Context, storage *registry.Storage, name string, dryRun ...string) (configbutler.RequestOutcome, error) {
	answer, err := ask(ctx, storage, "syncstatuses/retry", name, &configbutler.Retry{}, dryRun...)
	if err != nil {
		return configbutler.RequestOutcome{}, err
	}
	return answer.Status, nil
}

// What can be said of a record is what the table of states has for a user; everything else is refused and says what is possible.
func TestRecordsAreDismissedAndTriedAgain(t *testing.T) {
	const (
		dismissedFrom = "; Dismissed follows Applied, AutoApplied or ManualIntervention"
		retriedFrom   = "; Retrying follows Failed or ManualIntervention"
	)
	tests := []struct {
		from, to      v1alpha1.SyncState
		says, refuses string
	}{
		{from: autoApplied, to: dismissed, says: "Dismissed; nothing else has changed"},
		{from: manualIntervention, to: dismissed, says: "Dismissed; nothing else has changed"},
		{from: dismissed, to: dismissed, says: "joe has dismissed it already"},
		{from: failed, to: dismissed, refuses: "that is Failed cannot become Dismissed, only ManualIntervention or Retrying" + dismissedFrom},
		{from: retrying, to: dismissed, refuses: "that is Retrying cannot become Dismissed, only Applied, AutoApplied or Failed" + dismissedFrom},
		{from: manualIntervention, to: retrying, says: "Attempt 2 is under way; status.state says what comes of it"},
		{from: failed, to: retrying, says: "Attempt 2 is under way; status.state says what comes of it"},
		{from: retrying, to: retrying, says: "Attempt 2 is under way already"},
		{from: autoApplied, to: retrying, refuses: "that is AutoApplied cannot become Retrying, only Dismissed" + retriedFrom},
		{from: dismissed, to: retrying, refuses: "that is Dismissed cannot become Retrying: nothing follows Dismissed" + retriedFrom},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s to %s", tt.from, tt.to), func(t *testing.T) {
			storage := newStorage(t)
			catalog := newCatalog(t, storage, func(*configbutler.AppCatalog) {})
			before := inState(t, storage, catalog, tt.from)
			request := map[v1alpha1.SyncState]func(context.Context, *registry.Storage, string, ...string) (configbutler.RequestOutcome, error){
				dismissed: dismissOf, retrying: retryOf,
			}[tt.to]
			rehearsed, rehearsal := request(as(t, "jane"), storage, before.Name, metav1.DryRunAll)
			if diff := cmp.Diff(before, storedRecord(t, storage, before.Name)); diff != "" {
				t.Errorf("a dry run changes (-before +after):\n%s", diff)
			}
			answer, err := request(as(t, "jane"), storage, before.Name)
			after := storedRecord(t, storage, before.Name)
			if tt.refuses != "" {
				for _, err := range []error{rehearsal, err} {
					if !apierrors.IsConflict(err) || !strings.HasSuffix(err.Error(), tt.refuses) {
						t.Errorf("%v, want %s", err, tt.refuses)
					}
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("refused, and yet it changes (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil || rehearsal != nil {
				t.Fatal(err, rehearsal)
			}
			if !answer.Accepted || answer.Message != tt.says || !slices.Equal(answer.SyncStatuses, []string{before.Name}) || !rehearsed.Accepted {
				t.Errorf("answer %+v, want %s; in a dry run %+v", answer, tt.says, rehearsed)
			}
			want := before
			if tt.from != tt.to {
				if want, err = syncstatus.Move(before, syncstatus.Step{To: tt.to, By: "jane", At: noon}); err != nil {
					t.Fatal(err)
				}
			}
			want.ResourceVersion = after.ResourceVersion
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if now := storedCatalog(t, storage); now.ResourceVersion != catalog.ResourceVersion {
				t.Errorf("the catalog has changed: %+v", now)
			}
		})
	}
}

// TestRetryForNothing retries a record of a deleted catalog: the attempt would never end, and its record would stay forever.
func TestRetryForNothing(t *testing.T) {
	storage := newStorage(t)
	catalog := newCatalog(t, storage, func(*configbutler.AppCatalog) {})
	record := inState(t, storage, catalog, manualIntervention)
	for _, another := range []bool{false, true} {
		if _, _, err := storage.Endpoints["appcatalogs"].(rest.GracefulDeleter).Delete(
			in(t), "shop", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if another {
			newCatalog(t, storage, func(*configbutler.AppCatalog) {})
		}
		_, err := retryOf(as(t, "jane"), storage, record.Name)
		if !apierrors.IsConflict(err) ||
			!strings.Contains(err.Error(), "the AppCatalog shop that it is about is gone, so nothing is left to try") {
			t.Errorf("another of its name: %v: %v", another, err)
		}
		if !another {
			newCatalog(t, storage, func(*configbutler.AppCatalog) {})
		}
	}
	if _, err := dismissOf(as(t, "jane"), storage, record.Name); err != nil {
		t.Error(err)
	}
}

func TestRetryWhileChangesWait(t *testing.T) {
	storage := newStorage(t)
	catalog := newCatalog(t, storage, func(c *configbutler.AppCatalog) { c.Spec.PauseUntil = new(metav1.NewTime(noon.Add(time.Hour))) })
	record := inState(t, storage, catalog, manualIntervention)
	answer, err := retryOf(as(t, "jane"), storage, record.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(answer.Message, "Attempt 2 is made as soon as it can be: changes of the source wait until 2026-05-04T13:00:00Z") {
		t.Errorf("answer %+v", answer)
	}
}

// Between the reading and the writing of one side, the other one writes. Nothing that either has said is lost.
func TestRecordsAreWrittenByTwo(t *testing.T) {
	t.Run("the engine is faster", func(t *testing.T) {
		storage := newStorage(t)
		record := inState(t, storage, newCatalog(t, storage, func(*configbutler.AppCatalog) {}), autoApplied)
		meanwhile := func(context.Context, runtime.Object) error {
			found := record.DeepCopy()
			found.Status.WorkloadCount, found.Status.WorkloadNames = 2, []string{"api", "worker"}
			_, err := storage.Records.Write(t.Context(), found)
			return err
		}
		if _, err := storage.Endpoints["syncstatuses/dismiss"].(rest.NamedCreater).Create(
			as(t, "jane"), record.Name, &configbutler.Dismissal{}, meanwhile, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := storedRecord(t, storage, record.Name).Status; after.State != dismissed || after.ResolvedBy != "jane" ||
			after.WorkloadCount != 2 {
			t.Errorf("stored %+v", after)
		}
	})
	for name, tt := range map[string]struct {
		from v1alpha1.SyncState
		say  func(context.Context, *registry.Storage, string, ...string) (configbutler.RequestOutcome, error)
		// late is what the engine writes, with what it has read before.
		late func(*v1alpha1.SyncStatus)
		want v1alpha1.SyncState
	}{
		"the engine has read it before it was dismissed": {
			from: autoApplied, say: dismissOf, late: func(r *v1alpha1.SyncStatus) { r.Status.WorkloadCount = 2 }, want: dismissed,
		},
		"the engine has read it before it was tried again": {
			from: failed, say: retryOf, late: func(r *v1alpha1.SyncStatus) { r.Status.State = manualIntervention }, want: retrying,
		},
		"the engine begins it once more": {
			from: manualIntervention, say: retryOf, late: func(r *v1alpha1.SyncStatus) {
				r.Status.State, r.UID, r.ResourceVersion, r.Status.Attempts = failed, "", "", 1
			}, want: retrying,
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			record := inState(t, storage, newCatalog(t, storage, func(*configbutler.AppCatalog) {}), tt.from)
			if _, err := tt.say(as(t, "jane"), storage, record.Name); err != nil {
				t.Fatal(err)
			}
			before := storedRecord(t, storage, record.Name)
			late := record.DeepCopy()
			tt.late(late)
			if _, err := storage.Records.Write(t.Context(), late); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
				t.Errorf("written: %v", err)
			}
			after := storedRecord(t, storage, record.Name)
			if diff := cmp.Diff(before, after); diff != "" || after.Status.State != tt.want {
				t.Errorf("state %s, changed (-before +after):\n%s", after.Status.State, diff)
			}
		})
	}
}
