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

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/registry"
)

// dismissPrompts asks for the prompts of the environment to be dismissed.
func dismissPrompts(ctx context.Context, storage *registry.Storage, dryRun ...string) (configbutler.RequestOutcome, error) {
	answer, err := ask(ctx, storage, "environments/dismiss", "alice", &configbutler.Dismissal{
		Status: configbutler.RequestOutcome{SyncStatuses: []string{"other"}},
	}, dryRun...)
	if err != nil {
		return configbutler.RequestOutcome{}, err
	}
	return answer.Status, nil
}

// upToDate is an environment to which the catalog offers nothing.
func upToDate(e envt) {
	e.Status.AppliedRevision, e.Status.AppliedCatalogSync, e.Status.ChangedWorkloadCount = 5, e.Status.LatestCatalogSync, 0
}

func TestPromptsOfAnEnvironmentAreDismissed(t *testing.T) {
	begun := []v1alpha1.SyncState{inProgress}
	needsSomeone := []v1alpha1.SyncState{inProgress, failed, manualIntervention}
	tests := map[string]struct {
		change func(envt)
		// record says that there is a record about what workloads refer to, and through which states it has come.
		record bool
		states []v1alpha1.SyncState
		// catalog and dependency say what is put aside.
		catalog, dependency bool
		says, refuses       string
	}{
		"what the catalog offers": {
			change: asIs, catalog: true,
			says: "Dismissed what the catalog offers (SyncStatus shop-newer), until it offers something else; nothing else has changed",
		},
		"what has changed of what workloads refer to": {
			change: upToDate, record: true, dependency: true,
			says: "Dismissed what has changed of what workloads refer to (SyncStatus %s), until more does; nothing else has changed",
		},
		"what needs someone": {
			change: upToDate, record: true, states: needsSomeone, dependency: true,
			says: "Dismissed what has changed of what workloads refer to (SyncStatus %s), until more does; nothing else has changed",
		},
		"both": {
			change: asIs, record: true, catalog: true, dependency: true,
			says: "Dismissed what the catalog offers (SyncStatus shop-newer), until it offers something else, and " +
				"what has changed of what workloads refer to (SyncStatus %s), until more does; nothing else has changed",
		},
		"one of both, because the other is being taken": {
			change: asIs, record: true, states: begun, catalog: true,
			says: "Dismissed what the catalog offers (SyncStatus shop-newer), until it offers something else; nothing else has changed",
		},
		"none, because it is being taken": {
			change: upToDate, record: true, states: begun,
			refuses: "that is InProgress cannot become Dismissed, only Completed or Failed; Dismissed follows ManualIntervention or Pending",
		},
		"nothing": {change: upToDate, says: "There is nothing to dismiss: Synced"},
		"it has been": {
			change: func(e envt) { e.Status.DismissedCatalogSync, e.Status.Dismissals = "shop-newer", 1 },
			says:   "There is nothing to dismiss: Dismissed: 2 workloads changed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			newEnvironment(t, storage, tt.change)
			record := &v1alpha1.SyncStatus{}
			if tt.record {
				record = prompts(t, storage, tt.states...)
			}
			before := storedEnvironment(t, storage)
			_, rehearsal := dismissPrompts(as(t, "jane"), storage, metav1.DryRunAll)
			unchanged(t, storage, before)
			answer, err := dismissPrompts(as(t, "jane"), storage)
			if tt.refuses != "" {
				for _, err := range []error{rehearsal, err} {
					if !apierrors.IsConflict(err) || !strings.HasSuffix(err.Error(), tt.refuses) {
						t.Errorf("%v, want %s", err, tt.refuses)
					}
				}
				unchanged(t, storage, before)
				return
			}
			if err != nil || rehearsal != nil {
				t.Fatal(err, rehearsal)
			}
			says, want := tt.says, before.DeepCopy()
			if tt.catalog {
				want.Status.DismissedCatalogSync = "shop-newer"
			}
			if tt.dependency {
				says = fmt.Sprintf(says, record.Name)
				want.Status.LatestDependencySync, want.Status.DismissedDependencySync = "", record.Name
				if after := storedRecord(t, storage, record.Name).Status; after.State != dismissed || after.ResolvedBy != "jane" {
					t.Errorf("record %+v", after)
				}
			} else if tt.record && storedRecord(t, storage, record.Name).ResourceVersion != record.ResourceVersion {
				t.Error("the record has changed")
			}
			if tt.catalog || tt.dependency {
				want.Status.Dismissals++
			}
			after := storedEnvironment(t, storage)
			if tt.catalog {
				at := metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)) // the clock of the storage
				want.Status.DismissedBy, want.Status.DismissedAt = "jane", &at
			}
			want.ResourceVersion, want.Status.State = after.ResourceVersion, after.Status.State
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if !answer.Accepted || answer.Message != says || slices.Contains(answer.SyncStatuses, record.Name) != tt.dependency ||
				len(answer.SyncStatuses) > 1 {
				t.Errorf("answer %+v, want %s", answer, says)
			}
			if _, err := dismissPrompts(as(t, "joe"), storage); err != nil && !apierrors.IsConflict(err) {
				t.Errorf("again: %v", err)
			}
			unchanged(t, storage, after)
		})
	}
}

// capped has the policy let some prompts in a row be dismissed.
func capped(t *testing.T, storage *registry.Storage, most int32) {
	t.Helper()
	create(t, storage, "syncpolicies", &configbutler.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: configbutler.SyncPolicySpec{
			MaxDismissals: &most, BatchWindow: &metav1.Duration{Duration: 30e9}, MaxSyncsPerMinute: new(int32(60)),
			Retry: configbutler.RetryPolicy{
				MaxAttempts: new(int32(5)), Backoff: &metav1.Duration{Duration: 10e9}, MaxBackoff: &metav1.Duration{Duration: 600e9},
			},
			Retention: configbutler.Retention{Days: new(int32(90)), KeepPerSubject: new(int32(10)), MaxPerSubject: new(int32(1000))},
		},
	})
}

// With one dismissal left, either way to dismiss takes it, and the next is refused and changes nothing. Undismissal gives all back.
func TestDismissalsAreCounted(t *testing.T) {
	const refusal = "2 prompts in a row have been dismissed, and spec.maxDismissals of SyncPolicy default is 2: this one can only be taken, " +
		"with the subresource sync"
	ways := map[string]func(ctx context.Context, storage *registry.Storage, record string, dryRun ...string) error{
		"of the environment": func(ctx context.Context, storage *registry.Storage, _ string, dryRun ...string) error {
			_, err := dismissPrompts(ctx, storage, dryRun...)
			return err
		},
		"of the record": func(ctx context.Context, storage *registry.Storage, record string, dryRun ...string) error {
			_, err := dismissOf(ctx, storage, record, dryRun...)
			return err
		},
	}
	for name, dismiss := range ways {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			newEnvironment(t, storage, func(e envt) {
				upToDate(e)
				e.Status.Dismissals = 1
			})
			capped(t, storage, 2)
			record := prompts(t, storage)
			before := dismissals(t)
			if err := dismiss(as(t, "jane"), storage, record.Name, metav1.DryRunAll); err != nil || dismissals(t) != before {
				t.Errorf("%v, or what was only tried is counted", err)
			}
			if err := dismiss(as(t, "jane"), storage, record.Name); err != nil {
				t.Fatal(err)
			}
			if dismissals(t) == before {
				t.Error("the metric does not count it")
			}
			if after := storedEnvironment(t, storage).Status; after.Dismissals != 2 || after.LatestDependencySync != "" {
				t.Errorf("stored %+v", after)
			}
			second, err := recordIn(in(t), storage, storedEnvironment(t, storage), v1alpha1.SyncTypeDependency, "b2")
			if err != nil {
				t.Fatal(err)
			}
			if err := editEnvironment(in(t), storage, "environments/status",
				func(e envt) { e.Status.LatestDependencySync = second.Name }); err != nil {
				t.Fatal(err)
			}
			stored := storedEnvironment(t, storage)
			for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
				if err := dismiss(as(t, "jane"), storage, second.Name, dryRun...); !apierrors.IsConflict(err) ||
					!strings.HasSuffix(err.Error(), refusal) {
					t.Errorf("%v, want %s", err, refusal)
				}
			}
			unchanged(t, storage, stored)
			if after := storedRecord(t, storage, second.Name); after.ResourceVersion != second.ResourceVersion {
				t.Errorf("the record has changed: %+v", after)
			}
			undismissed(t, storage, "What was dismissed is offered again, and dismissals are counted anew: 1 ConfigMap changed")
			if err := dismiss(as(t, "jane"), storage, second.Name); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

// dismissals is what the metric counts.
func dismissals(t *testing.T) float64 {
	t.Helper()
	return metrictest.Values(t)["dismissals_total dependencies"]
}

// undismissed asks for what was dismissed.
func undismissed(t *testing.T, storage *registry.Storage, want string) {
	t.Helper()
	before := storedEnvironment(t, storage)
	if _, err := ask(as(t, "jane"), storage, "environments/undismiss", "alice", &configbutler.Undismissal{}, metav1.DryRunAll); err != nil {
		t.Error(err)
	}
	unchanged(t, storage, before)
	answer, err := ask(as(t, "jane"), storage, "environments/undismiss", "alice", &configbutler.Undismissal{})
	if err != nil {
		t.Fatal(err)
	}
	if !answer.Status.Accepted || answer.Status.Message != want {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
	if after := storedEnvironment(t, storage).Status; after.DismissedCatalogSync != "" || after.Dismissals != 0 {
		t.Errorf("stored %+v", after)
	}
}

func TestUndismissal(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, func(e envt) { e.Status.DismissedCatalogSync, e.Status.Dismissals = "shop-newer", 3 })
	undismissed(t, storage, "What was dismissed is offered again, and dismissals are counted anew: 2 workloads changed")
	undismissed(t, storage, "Nothing was dismissed: 2 workloads changed")
}

// What is put aside of what workloads refer to is said to be so, and can be offered again.
func TestUndismissalOfDependencies(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, upToDate)
	record := prompts(t, storage)
	if _, err := dismissPrompts(as(t, "jane"), storage); err != nil {
		t.Fatal(err)
	}
	if after := storedEnvironment(t, storage).Status; after.State != "Dismissed: 1 ConfigMap changed" ||
		after.DismissedDependencySync != record.Name {
		t.Errorf("stored %+v", after)
	}
	undismissed(t, storage, "What was dismissed is offered again, and dismissals are counted anew: 1 ConfigMap changed")
	if after := storedEnvironment(t, storage).Status; after.DismissedDependencySync != "" || after.Dismissals != 0 {
		t.Errorf("stored %+v", after)
	}
}

// TestAttachedObjectsAreDismissedWithTheCatalog checks that changes of attached objects are dismissed with those of the catalog: they have
// no record.
func TestAttachedObjectsAreDismissedWithTheCatalog(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, func(e envt) {
		upToDate(e)
		e.Status.ChangedDependencies = []configbutler.DependencyCount{{Type: configbutler.CountedAutoscaler, Count: 1}}
	})
	if _, err := dismissPrompts(as(t, "jane"), storage); err != nil {
		t.Fatal(err)
	}
	if after := storedEnvironment(t, storage).Status; after.State != "Dismissed: 1 HorizontalPodAutoscaler changed" || after.Dismissals != 1 {
		t.Errorf("stored %+v", after)
	}
	undismissed(t, storage, "What was dismissed is offered again, and dismissals are counted anew: 1 HorizontalPodAutoscaler changed")
}

// Who has died between the record and the environment has left a prompt for nothing.
func TestDismissalThatWasInterrupted(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, upToDate)
	record := prompts(t, storage, dismissed)
	if _, err := dismissOf(as(t, "jane"), storage, record.Name); err != nil {
		t.Fatal(err)
	}
	if after := storedEnvironment(t, storage).Status; after.LatestDependencySync != "" || after.Dismissals != 1 {
		t.Errorf("stored %+v", after)
	}
	if after := storedRecord(t, storage, record.Name); after.ResourceVersion != record.ResourceVersion {
		t.Errorf("the record has changed: %+v", after)
	}
}

// What the catalog offers may change while admission is asked: only what was offered then is put aside.
func TestDismissalWhileMoreIsOffered(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, asIs)
	meanwhile := func(context.Context, runtime.Object) error {
		return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.LatestCatalogSync = "shop-newest" })
	}
	if _, err := storage.Endpoints["environments/dismiss"].(rest.NamedCreater).Create(
		as(t, "jane"), "alice", &configbutler.Dismissal{}, meanwhile, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := storedEnvironment(t, storage).Status; after.DismissedCatalogSync != "shop-newest" {
		t.Errorf("stored %+v", after)
	}
}
