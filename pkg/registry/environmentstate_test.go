// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

// selected are the names of the Environments of a state.
func selected(t *testing.T, storage *registry.Storage, state string) []string {
	t.Helper()
	found, err := storage.Endpoints["environments"].(rest.Lister).List(in(t), &internalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(v1alpha1.EnvironmentStateField, state),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found.(*configbutler.EnvironmentList).Items {
		names = append(names, e.Name)
	}
	return names
}

// TestStateOfAnEnvironment checks that status.state is the text of the column STATE after every write, and that no
// client can set another one.
func TestStateOfAnEnvironment(t *testing.T) {
	storage := newStorage(t)
	is := func(want string) {
		t.Helper()
		if got := storedEnvironment(t, storage).Status.State; got != want {
			t.Errorf("state %q, want %q", got, want)
		}
		if found := selected(t, storage, want); len(found) != 1 {
			t.Errorf("%q selects %q", want, found)
		}
	}
	created := environment()
	created.Status.State = "Synced"
	createEnvironment(as(t, "eve"), t, storage, created)
	is("Not looked at yet")
	change := func(endpoint string, change func(envt)) {
		t.Helper()
		ctx := as(t, "jane")
		if endpoint == "environments/status" {
			ctx = in(t) // Only the server may.
		}
		if err := editEnvironment(ctx, storage, endpoint, change); err != nil {
			t.Fatal(err)
		}
	}
	change("environments/status", func(e envt) {
		e.Status.State, e.Status.PendingEdits = "Everything is fine", nil
		e.Status.ObservedGeneration, e.Status.AppliedRevision, e.Status.LatestRevision = 1, 5, 5
	})
	is("Synced")
	change("environments/status", func(e envt) { e.Status.ChangedWorkloadCount = 2 })
	is("2 workloads changed")
	if found := selected(t, storage, "Synced"); len(found) > 0 {
		t.Errorf("Synced selects %q", found)
	}
	change("environments", func(e envt) { e.Spec.AutoSync = true })
	is("Taking over a change by jane")
	change("environments/status", func(e envt) {
		e.Status.ObservedGeneration, e.Status.PendingEdits = 2, nil
		e.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionSyncing, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonProgressing, LastTransitionTime: metav1.NewTime(noon),
		}}
	})
	is("Syncing")
}
