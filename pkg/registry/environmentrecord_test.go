// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

const (
	inProgress = v1alpha1.SyncStateInProgress
	conflicted = v1alpha1.SyncStateConflicted
	completed  = v1alpha1.SyncStateCompleted
)

// What can be said of the records of an environment changes them and nothing else.
func TestRecordsOfEnvironmentsAreDismissedAndTriedAgain(t *testing.T) {
	const run, dependency = v1alpha1.SyncTypeEnvironment, v1alpha1.SyncTypeDependency
	type states = []v1alpha1.SyncState
	tests := []struct {
		of            v1alpha1.SyncType
		states        states
		to            v1alpha1.SyncState
		says, refuses string
	}{
		{of: run, states: states{inProgress, failed}, to: retrying, says: "Attempt 2 is under way; status.state says what comes of it"},
		{
			of: run, states: states{inProgress, failed, manualIntervention}, to: retrying,
			says: "Attempt 2 is under way; status.state says what comes of it",
		},
		{of: run, states: states{inProgress, failed, manualIntervention}, to: dismissed, says: "Dismissed; nothing else has changed"},
		{of: run, states: states{inProgress, conflicted}, to: retrying, refuses: "it is Conflicted: a user must decide about the fields first, " +
			"with the subresource resolve of the Environment, which tries it again"},
		{of: run, states: states{inProgress, completed}, to: retrying, refuses: "cannot become Retrying: nothing follows Completed"},
		{of: run, states: states{inProgress}, to: dismissed, refuses: "that is InProgress cannot become Dismissed"},
		{of: dependency, states: states{inProgress, failed}, to: retrying, says: "Attempt 2 is under way; status.state says what comes of it"},
		{of: dependency, states: states{inProgress, failed, manualIntervention}, to: retrying, says: "Attempt 2 is under way"},
		{of: dependency, to: dismissed, says: "Dismissed; nothing else has changed"},
		{of: dependency, to: retrying, refuses: "that is Pending cannot become Retrying"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.of, tt.states, tt.to), func(t *testing.T) {
			storage := newStorage(t)
			environment := newEnvironment(t, storage, asIs)
			record := mustRecord(t, storage, environment, tt.of, tt.states...)
			ask := map[v1alpha1.SyncState]func(context.Context, *registry.Storage, string, ...string) (configbutler.RequestOutcome, error){
				dismissed: dismissOf, retrying: retryOf,
			}[tt.to]
			_, rehearsal := ask(as(t, "jane"), storage, record.Name, metav1.DryRunAll)
			if diff := cmp.Diff(record, storedRecord(t, storage, record.Name)); diff != "" {
				t.Errorf("a dry run changes (-before +after):\n%s", diff)
			}
			answer, err := ask(as(t, "jane"), storage, record.Name)
			after := storedRecord(t, storage, record.Name)
			unchanged(t, storage, environment)
			if tt.refuses != "" {
				for _, err := range []error{err, rehearsal} {
					if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), tt.refuses) {
						t.Errorf("%v, want %s", err, tt.refuses)
					}
				}
				if diff := cmp.Diff(record, after); diff != "" {
					t.Errorf("refused, and yet it changes (-before +after):\n%s", diff)
				}
				return
			}
			if err != nil || rehearsal != nil {
				t.Fatal(err, rehearsal)
			}
			if !strings.HasPrefix(answer.Message, tt.says) || !slices.Equal(answer.SyncStatuses, []string{record.Name}) ||
				after.Status.State != tt.to {
				t.Errorf("answer %+v, want %s; stored %+v", answer, tt.says, after.Status)
			}
		})
	}
}

func TestRetryOfAnEnvironmentsRecord(t *testing.T) {
	condition := func(of, message string) func(envt) {
		return func(e envt) {
			e.Status.Conditions = []metav1.Condition{{
				Type: of, Status: metav1.ConditionTrue, Reason: "Because", Message: message, LastTransitionTime: metav1.NewTime(noon),
			}}
		}
	}
	const waits = "Attempt 2 is made as soon as it can be: "
	tests := map[string]struct {
		change        func(envt)
		prepare       func(*testing.T, *registry.Storage)
		says, refuses string
	}{
		"held": {change: condition(v1alpha1.ConditionHeld, "window nightly opens 18:00 UTC"), says: waits + "window nightly opens 18:00 UTC"},
		"stalled": {
			change: condition(v1alpha1.ConditionStalled, "the namespace shop-alice does not exist"),
			says:   waits + "the namespace shop-alice does not exist",
		},
		"being deleted": {
			change: held, prepare: deleteEnvironment, refuses: "the Environment alice that it is about is gone, so nothing is left to try",
		},
		"deleted": {
			change: asIs, prepare: deleteEnvironment, refuses: "the Environment alice that it is about is gone, so nothing is left to try",
		},
		"another of its name": {
			change: asIs, refuses: "the Environment alice that it is about is gone, so nothing is left to try",
			prepare: func(t *testing.T, storage *registry.Storage) {
				deleteEnvironment(t, storage)
				createEnvironment(as(t, "eve"), t, storage, environment())
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			record := mustRecord(t, storage, newEnvironment(t, storage, tt.change), v1alpha1.SyncTypeEnvironment, inProgress, failed,
				manualIntervention)
			if tt.prepare != nil {
				tt.prepare(t, storage)
			}
			answer, err := retryOf(as(t, "jane"), storage, record.Name)
			if tt.refuses != "" {
				if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), tt.refuses) {
					t.Errorf("%v, want %s", err, tt.refuses)
				}
				if _, err := dismissOf(as(t, "jane"), storage, record.Name); err != nil {
					t.Errorf("dismissed: %v", err)
				}
				return
			}
			if err != nil || answer.Message != tt.says {
				t.Errorf("%v: %+v, want %s", err, answer, tt.says)
			}
		})
	}
}

// TestRetryIsOfTheRequestingUser shows by whose permissions Secrets are copied after a retry: by those of its user, as authenticated.
func TestRetryIsOfTheRequestingUser(t *testing.T) {
	groups := []string{"shop-team", "system:authenticated"}
	ctx := genericapirequest.WithUser(in(t), &user.DefaultInfo{Name: "joe", UID: "7", Groups: groups})
	storage := newStorage(t)
	record := mustRecord(t, storage, newEnvironment(t, storage, asIs), v1alpha1.SyncTypeEnvironment, inProgress, failed, manualIntervention)
	requestedBy := func() *v1alpha1.AutomatedBy {
		return storedRecord(t, storage, record.Name).Status.RequestedBy
	}
	if _, err := retryOf(ctx, storage, record.Name, metav1.DryRunAll); err != nil || requestedBy() != nil {
		t.Errorf("after a dry run (%v) it is the request of %+v", err, requestedBy())
	}
	if _, err := retryOf(ctx, storage, record.Name); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.AutomatedBy{Username: "joe", UID: "7", Groups: groups, Time: metav1.NewTime(noon)}
	if diff := cmp.Diff(want, requestedBy()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := retryOf(as(t, "jane"), storage, record.Name); err != nil || requestedBy().Username != "jane" {
		t.Errorf("after a second retry (%v) it is the request of %+v", err, requestedBy())
	}
}

// TestRequestsForEnvironmentsAreJudgedFirst checks that every request is for the environment in its path, is admitted, has a user, and
// changes nothing in a dry run.
func TestRequestsForEnvironmentsAreJudgedFirst(t *testing.T) {
	forbid := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(configbutler.Resource("environments"), "alice", nil)
	}
	requests := map[string]func(metav1.ObjectMeta) runtime.Object{
		"sync": func(m metav1.ObjectMeta) runtime.Object {
			return &configbutler.SyncRequest{ObjectMeta: m, Spec: configbutler.SyncRequestSpec{Action: configbutler.SyncActionAll}}
		},
		"dismiss":    func(m metav1.ObjectMeta) runtime.Object { return &configbutler.Dismissal{ObjectMeta: m} },
		"undismiss":  func(m metav1.ObjectMeta) runtime.Object { return &configbutler.Undismissal{ObjectMeta: m} },
		"rediscover": func(m metav1.ObjectMeta) runtime.Object { return &configbutler.Rediscovery{ObjectMeta: m} },
		"resolve": func(m metav1.ObjectMeta) runtime.Object {
			return &configbutler.ConflictResolution{ObjectMeta: m, Spec: configbutler.ConflictResolutionSpec{Keep: choice("web")}}
		},
		"rollback": func(m metav1.ObjectMeta) runtime.Object {
			return &configbutler.Rollback{ObjectMeta: m, Spec: configbutler.RollbackSpec{Revision: 3}}
		},
	}
	for subresource, request := range requests {
		t.Run(subresource, func(t *testing.T) {
			storage := newStorage(t, planning)
			before := newEnvironment(t, storage, torn)
			served := storage.Endpoints["environments/"+subresource].(rest.NamedCreater)
			create := func(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc) error {
				_, err := served.Create(ctx, name, obj, admit, &metav1.CreateOptions{})
				return err
			}
			asked := as(t, "jane")
			elsewhere := request(metav1.ObjectMeta{Name: "other"})
			if err := create(asked, "alice", elsewhere, nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") {
				t.Errorf("for another object: %v", err)
			}
			if err := create(asked, "none", request(metav1.ObjectMeta{}), nil); !apierrors.IsNotFound(err) {
				t.Errorf("for nothing: %v", err)
			}
			if err := create(asked, "alice", request(metav1.ObjectMeta{}), forbid); !apierrors.IsForbidden(err) {
				t.Errorf("admission refuses: %v", err)
			}
			if err := create(in(t), "alice", request(metav1.ObjectMeta{}), nil); !apierrors.IsUnauthorized(err) {
				t.Errorf("without a user: %v", err)
			}
			if err := create(asked, "alice", &configbutler.MirrorSync{}, nil); !apierrors.IsBadRequest(err) {
				t.Errorf("another kind: %v", err)
			}
			dryRun := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			if _, err := served.Create(asked, "alice", request(metav1.ObjectMeta{}), nil, dryRun); err != nil {
				t.Errorf("dry run: %v", err)
			}
			unchanged(t, storage, before)
		})
	}
}
