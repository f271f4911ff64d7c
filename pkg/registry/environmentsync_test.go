// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
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
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// requestOf is a request as it is decoded, with its defaults.
func requestOf(change func(*configbutler.SyncRequestSpec)) *configbutler.SyncRequest {
	request := &configbutler.SyncRequest{Spec: configbutler.SyncRequestSpec{Action: configbutler.SyncActionAll}}
	change(&request.Spec)
	return request
}

func everything(*configbutler.SyncRequestSpec) {}

func only(name string) func(*configbutler.SyncRequestSpec) {
	return func(s *configbutler.SyncRequestSpec) {
		s.Workloads = []configbutler.WorkloadReference{{Kind: configbutler.WorkloadDeployment, Name: name}}
	}
}

// The answer names the records of the run as soon as the controller has them.
func TestSyncOfAnEnvironmentIsAnswered(t *testing.T) {
	const run, open = v1alpha1.SyncTypeEnvironment, v1alpha1.SyncTypeDependency
	tests := map[string]struct {
		action configbutler.SyncAction
		// open reports that a record about what workloads refer to exists before.
		open bool
		// records are made of the request.
		records []v1alpha1.SyncType
		states  []v1alpha1.SyncState
		want    string
	}{
		"everything": {action: configbutler.SyncActionAll, records: []v1alpha1.SyncType{run}, want: "; SyncStatus %s: Waiting"},
		"everything, which has begun": {
			action: configbutler.SyncActionAll, records: []v1alpha1.SyncType{run}, states: []v1alpha1.SyncState{v1alpha1.SyncStateInProgress},
			want: "; SyncStatus %s: Syncing",
		},
		"everything, with what has changed": {
			action: configbutler.SyncActionAll, records: []v1alpha1.SyncType{run}, open: true,
			want: "; SyncStatus %s: Waiting; SyncStatus %s: 1 ConfigMap changed",
		},
		"workloads": {
			action: configbutler.SyncActionCatalog, records: []v1alpha1.SyncType{run}, open: true, want: "; SyncStatus %s: Waiting",
		},
		"what has changed of what they refer to": {
			action: configbutler.SyncActionCluster, open: true, want: "; SyncStatus %s: 1 ConfigMap changed",
		},
		"what they refer to, of which nothing has changed": {
			action: configbutler.SyncActionCluster, records: []v1alpha1.SyncType{open}, want: "; SyncStatus %s: 1 ConfigMap changed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			newEnvironment(t, storage, asIs)
			var open *v1alpha1.SyncStatus
			if tt.open {
				open = prompts(t, storage)
			}
			var names []any
			wait := leading(t, storage, asked, func(e envt) error {
				request := e.Status.PendingRequests[0]
				for _, of := range tt.records {
					record, err := recordIn(in(t), storage, e, of, request.ID, tt.states...)
					if err != nil {
						return err
					}
					names = append(names, record.Name)
				}
				if len(tt.records) == 0 {
					open.Annotations = map[string]string{v1alpha1.AnnotationRequest: request.ID}
					if _, err := storage.Records.Write(t.Context(), open); err != nil {
						return err
					}
				}
				return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.ActiveSyncs = []string{"alice-active"} })
			})
			answer, err := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(func(s *configbutler.SyncRequestSpec) {
				s.Action = tt.action
			}))
			if err != nil {
				t.Fatal(err)
			}
			wait()
			if open != nil && tt.action != configbutler.SyncActionCatalog {
				names = append(names, open.Name)
			}
			var returned []any
			for _, name := range answer.Status.SyncStatuses {
				returned = append(returned, name)
			}
			if diff := cmp.Diff(names, returned); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if want := "The request is being processed" + fmt.Sprintf(tt.want, names...); !answer.Status.Accepted || answer.Status.Message != want ||
				answer.Status.Plan != nil {
				t.Errorf("answer %+v, want %s", answer.Status, want)
			}
		})
	}
}

// TestSyncOfAnEnvironmentIsDurable checks that a request is stored without a leader, as a request of the authenticated
// user, regardless of its content.
func TestSyncOfAnEnvironmentIsDurable(t *testing.T) {
	storage := newStorage(t, impatient)
	e := newEnvironment(t, storage, asIs)
	request := requestOf(only("web"))
	request.Spec.Force, request.Annotations = true, map[string]string{"configbutler.ai/actor": "joe"}
	request.Status = configbutler.SyncRequestStatus{
		RequestOutcome: configbutler.RequestOutcome{Message: "by joe", SyncStatuses: []string{"other"}}, Plan: &configbutler.SyncPlan{},
	}
	jane := genericapirequest.WithUser(in(t), &user.DefaultInfo{Name: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated}})
	answer, err := ask(jane, storage, "environments/sync", "alice", request)
	if err != nil {
		t.Fatal(err)
	}
	pending := storedEnvironment(t, storage).Status.PendingRequests
	if len(pending) != 1 {
		t.Fatalf("recorded %+v", pending)
	}
	want := configbutler.PendingEnvironmentRequest{
		ID: pending[0].ID, Actor: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated},
		Time: metav1.NewTime(noon), Type: configbutler.EnvironmentRequestSync, Sync: &request.Spec,
	}
	if diff := cmp.Diff(want, pending[0]); diff != "" || want.ID == "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	record := syncstatus.Names(v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeEnvironment, Batch: want.ID,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice", UID: e.UID},
	})[0]
	said := fmt.Sprintf("The request is accepted; until it is processed, status.pendingRequests of Environment alice (2 workloads changed) "+
		"has it under the id %s; then SyncStatus %s describes it", want.ID, record)
	if status := answer.Status; !status.Accepted || status.ID != want.ID || status.Message != said || len(status.SyncStatuses) > 0 || status.Plan != nil {
		t.Errorf("answer %+v, want %s", status, said)
	}
}

func TestEnvironmentSyncWithoutRecord(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, asIs)
	wait := leading(t, storage, asked, func(envt) error {
		return taken(in(t), storage, func(e envt) {
			e.Status.LastError = &configbutler.SyncError{Reason: "X", Message: "the target does not exist"}
		})
	})
	answer, err := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(everything))
	if err != nil {
		t.Fatal(err)
	}
	wait()
	if want := "Nothing is recorded of the request; Environment alice says: Failed: the target does not exist"; answer.Status.Message != want {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
}

// newerOffer has the catalog offer what a record says, and returns its name.
func newerOffer(t *testing.T, storage *registry.Storage) string {
	t.Helper()
	record, err := newRecord(storedCatalog(t, storage), "b2", syncstatus.Step{To: v1alpha1.SyncStateApplied, By: "joe", At: noon})
	if err != nil {
		t.Fatal(err)
	}
	syncstatus.SetChanges(record, []v1alpha1.ResourceSummary{
		{Type: "Deployment", Namespace: "production", Name: "web", ChangeType: v1alpha1.ChangeChanged},
		{Type: "Deployment", Namespace: "production", Name: "api", ChangeType: v1alpha1.ChangeChanged},
	})
	if _, err := storage.Records.Write(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if err := editCatalog(in(t), storage, "appcatalogs/status",
		func(c *configbutler.AppCatalog) { c.Status.LatestSync = record.Name }); err != nil {
		t.Fatal(err)
	}
	return record.Name
}

// What is refused leaves everything as it was, and so does a dry run.
func TestSyncOfAnEnvironmentRefuses(t *testing.T) {
	type spec = *configbutler.SyncRequestSpec
	tests := map[string]struct {
		change func(envt)
		// prepare returns the record that the refusal names, if it names one.
		prepare func(*testing.T, *registry.Storage) string
		request func(spec)
		refused func(error) bool
		want    string
	}{
		"an unknown action": {
			request: func(s spec) { s.Action = "Some" }, refused: apierrors.IsInvalid,
			want: `spec.action: Unsupported value: "Some": supported values: "Catalog", "Cluster", "All"`,
		},
		"a workload that there is not": {
			request: only("db"), refused: apierrors.IsInvalid,
			want: `spec.workloads[0]: Unsupported value: "Deployment/db": supported values: "Deployment/api", "Deployment/web"`,
		},
		"a catalog that has changed": {
			prepare: newerOffer, request: func(s spec) { s.ExpectedCatalogSync = "shop-newer" }, refused: apierrors.IsConflict,
			want: "spec.expectedCatalogSync is shop-newer, but what AppCatalog shop offers by now is SyncStatus %s: " +
				"2 workloads changed by joe (api,web) at revision 5",
		},
		"a catalog whose record was deleted": {
			request: func(s spec) { s.ExpectedCatalogSync = "shop-older" }, refused: apierrors.IsConflict,
			want: "but what AppCatalog shop offers by now is SyncStatus shop-newer at revision 5",
		},
		"more has changed in the source": {
			prepare: func(t *testing.T, storage *registry.Storage) string { return prompts(t, storage).Name },
			request: func(s spec) { s.ExpectedDependencySync = "alice-older" }, refused: apierrors.IsConflict,
			want: "spec.expectedDependencySync is alice-older, but what has changed by now is in SyncStatus %s: 1 ConfigMap changed (settings)",
		},
		"it was dismissed": {
			request: func(s spec) { s.ExpectedDependencySync = "alice-older" }, refused: apierrors.IsConflict,
			want: "spec.expectedDependencySync is no longer open, and nothing else is: SyncStatus alice-older",
		},
		"the catalog was deleted": {
			prepare: func(t *testing.T, storage *registry.Storage) string {
				if _, _, err := storage.Endpoints["appcatalogs"].(rest.GracefulDeleter).Delete(
					in(t), "shop", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				return ""
			},
			request: everything, refused: apierrors.IsConflict, want: "AppCatalog shop/shop, which it is built from, does not exist",
		},
		"it is being deleted": {
			change: held, prepare: func(t *testing.T, storage *registry.Storage) string {
				deleteEnvironment(t, storage)
				return ""
			},
			request: everything, refused: apierrors.IsConflict, want: "it is being deleted",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, impatient, planning)
			if tt.change == nil {
				tt.change = asIs
			}
			newEnvironment(t, storage, tt.change)
			want := tt.want
			if tt.prepare != nil {
				if record := tt.prepare(t, storage); record != "" {
					want = fmt.Sprintf(want, record)
				}
			}
			before := storedEnvironment(t, storage)
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				_, err := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(tt.request), dryRun...)
				if !tt.refused(err) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v: %v, want %q", dryRun, err, want)
				}
			}
			unchanged(t, storage, before)
		})
	}
}

// TestSyncOfAnEnvironmentAsItWasSeen checks that a request that expects the current records is accepted, also in an
// environment that stays at an earlier revision.
func TestSyncOfAnEnvironmentAsItWasSeen(t *testing.T) {
	storage := newStorage(t, impatient)
	newEnvironment(t, storage, func(e envt) { e.Spec.PinnedRevision = new(int64(3)) })
	if err := editCatalog(in(t), storage, "appcatalogs/status", func(c *configbutler.AppCatalog) {
		c.Status.History = history(5, 4, 3)
		c.Status.History[0].SyncStatus, c.Status.History[2].SyncStatus = "shop-newer", "shop-pinned"
	}); err != nil {
		t.Fatal(err)
	}
	open := prompts(t, storage).Name
	for _, expected := range []string{"shop-newer", "shop-pinned"} {
		if _, err := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(func(s *configbutler.SyncRequestSpec) {
			s.ExpectedCatalogSync, s.ExpectedDependencySync = expected, open
		})); err != nil {
			t.Errorf("expecting %s: %v", expected, err)
		}
	}
}

// Something may change between the judgement and the note.
func TestSyncOfAnEnvironmentThatChangesMeanwhile(t *testing.T) {
	storage := newStorage(t, impatient)
	newEnvironment(t, storage, asIs)
	open := prompts(t, storage).Name
	meanwhile := func(context.Context, runtime.Object) error {
		return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.LatestDependencySync = "alice-newer" })
	}
	request := requestOf(func(s *configbutler.SyncRequestSpec) { s.ExpectedDependencySync = open })
	_, err := storage.Endpoints["environments/sync"].(rest.NamedCreater).Create(as(t, "jane"), "alice", request, meanwhile,
		&metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "what has changed by now is in SyncStatus alice-newer") {
		t.Error(err)
	}
	if pending := storedEnvironment(t, storage).Status.PendingRequests; len(pending) > 0 {
		t.Errorf("recorded %+v", pending)
	}
}

// Of many who ask at once, each has a request of its own, or is sent away.
func TestRequestsForAnEnvironmentDoNotPileUp(t *testing.T) {
	storage := newStorage(t, impatient, planning)
	newEnvironment(t, storage, asIs)
	const most, more = 16, 4
	answers := make(chan error, most+more)
	for i := range most + more {
		go func() {
			user := as(t, fmt.Sprint("user-", i))
			if i%2 == 0 {
				_, err := ask(user, storage, "environments/rediscover", "alice", &configbutler.Rediscovery{})
				answers <- err
				return
			}
			_, err := ask(user, storage, "environments/sync", "alice", requestOf(everything))
			answers <- err
		}()
	}
	refused := 0
	for range most + more {
		if err := <-answers; apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), "16 requests wait for this environment") {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	waiting := map[string]bool{}
	for _, request := range storedEnvironment(t, storage).Status.PendingRequests {
		waiting[request.Actor] = true
	}
	if refused != more || len(waiting) != most {
		t.Errorf("%d are sent away and %v wait, want %d and %d", refused, waiting, more, most)
	}
	if _, err := ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(everything),
		metav1.DryRunAll); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a dry run: %v", err)
	}
}
