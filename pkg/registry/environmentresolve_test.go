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
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const image = "/spec/template/spec/containers[name=web]/image"

// torn is an environment in which a user has changed the image and the replicas of web, which the catalog has changed
// as well.
func torn(e envt) {
	e.Status.Conflicts = []configbutler.WorkloadConflict{{
		Kind: configbutler.WorkloadDeployment, Name: "web",
		Fields: []configbutler.FieldConflict{{Field: image, Managers: []string{"kubectl-edit"}}, {Field: "/spec/replicas"}},
	}}
}

func choice(name string, fields ...string) []configbutler.ConflictChoice {
	return []configbutler.ConflictChoice{{Kind: configbutler.WorkloadDeployment, Name: name, Fields: fields}}
}

func resolution(keep, take []configbutler.ConflictChoice) *configbutler.ConflictResolution {
	return &configbutler.ConflictResolution{Spec: configbutler.ConflictResolutionSpec{Keep: keep, Take: take}}
}

func TestConflictsAreResolved(t *testing.T) {
	storage := newStorage(t)
	e := newEnvironment(t, storage, torn)
	record := mustRecord(t, storage, e, v1alpha1.SyncTypeEnvironment, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateConflicted)
	var noted configbutler.PendingEnvironmentRequest
	wait := leading(t, storage, asked, func(e envt) error {
		noted = e.Status.PendingRequests[0]
		moved, err := syncstatus.Move(record, syncstatus.Step{To: retrying, By: noted.Actor, At: noon})
		if err != nil {
			return err
		}
		if _, err := storage.Records.Write(t.Context(), moved); err != nil {
			return err
		}
		return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.ActiveSyncs = []string{record.Name} })
	})
	request := resolution(choice("web", image), choice("web", "/spec/replicas"))
	answer, err := ask(as(t, "jane"), storage, "environments/resolve", "alice", request)
	if err != nil {
		t.Fatal(err)
	}
	wait()
	want := configbutler.PendingEnvironmentRequest{
		ID: noted.ID, Actor: "jane", Time: metav1.NewTime(noon), Type: configbutler.EnvironmentRequestResolve, Resolve: &request.Spec,
	}
	if diff := cmp.Diff(want, noted); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
	said := fmt.Sprintf("Decided: keep 1 field and take 1 field; SyncStatus %s: Attempt 2: the quota is used up", record.Name)
	if !answer.Status.Accepted || answer.Status.Message != said || !slices.Equal(answer.Status.SyncStatuses, []string{record.Name}) {
		t.Errorf("answer %+v, want %s", answer.Status, said)
	}
}

func TestResolutionsThatWait(t *testing.T) {
	storage := newStorage(t, impatient)
	before := newEnvironment(t, storage, torn)
	answer, err := ask(as(t, "jane"), storage, "environments/resolve", "alice", resolution(nil, choice("web")), metav1.DryRunAll)
	if want := "Would take 2 fields (dry run)"; err != nil || answer.Status.Message != want {
		t.Errorf("%v: %+v, want %s", err, answer, want)
	}
	unchanged(t, storage, before)
	answer, err = ask(as(t, "jane"), storage, "environments/resolve", "alice", resolution(nil, choice("web")))
	if err != nil || !strings.HasPrefix(answer.Status.Message, "The request is accepted; until it is processed") {
		t.Errorf("%v: %+v", err, answer)
	}
}

func TestResolveRefuses(t *testing.T) {
	tests := map[string]struct {
		change  func(envt)
		request *configbutler.ConflictResolution
		want    string
	}{
		"nothing": {
			change: torn, request: resolution(nil, nil), want: "spec: Required value: name fields to keep, fields to take, or both",
		},
		"another workload": {
			change: torn, request: resolution(choice("api"), nil),
			want: `spec.keep[0]: Unsupported value: "Deployment/api": supported values: "Deployment/web"`,
		},
		"another field": {
			change: torn, request: resolution(nil, choice("web", "/spec/paused")),
			want: `spec.take[0].fields: Unsupported value: "/spec/paused": supported values: "` + image + `", "/spec/replicas"`,
		},
		"both": {change: torn, request: resolution(choice("web"), choice("web", image)), want: "spec.take[0].fields: Duplicate value"},
		"no conflict": {
			change: asIs, request: resolution(choice("web"), nil), want: "has no conflict: the environment's status.conflicts is empty",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, impatient)
			before := newEnvironment(t, storage, tt.change)
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				_, err := ask(as(t, "jane"), storage, "environments/resolve", "alice", tt.request, dryRun...)
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v: %v, want %s", dryRun, err, tt.want)
				}
			}
			unchanged(t, storage, before)
		})
	}
}

// TestResolutionOfWhatIsResolvedMeanwhile has another user resolve the conflict during admission.
func TestResolutionOfWhatIsResolvedMeanwhile(t *testing.T) {
	storage := newStorage(t, impatient)
	newEnvironment(t, storage, torn)
	meanwhile := func(context.Context, runtime.Object) error {
		return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.Conflicts = nil })
	}
	_, err := storage.Endpoints["environments/resolve"].(rest.NamedCreater).Create(
		as(t, "jane"), "alice", resolution(choice("web"), nil), meanwhile, &metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	if pending := storedEnvironment(t, storage).Status.PendingRequests; len(pending) > 0 {
		t.Errorf("recorded %+v", pending)
	}
}

func TestRediscovery(t *testing.T) {
	storage := newStorage(t)
	before := newEnvironment(t, storage, upToDate)
	answer, err := ask(as(t, "jane"), storage, "environments/rediscover", "alice", &configbutler.Rediscovery{}, metav1.DryRunAll)
	if want := "Would find anew what workloads refer to (dry run)"; err != nil || answer.Status.Message != want {
		t.Errorf("%v: %+v, want %s", err, answer, want)
	}
	unchanged(t, storage, before)
	var noted configbutler.PendingEnvironmentRequest
	wait := leading(t, storage, asked, func(e envt) error {
		noted = e.Status.PendingRequests[0]
		return taken(in(t), storage, func(e envt) { e.Status.LatestDependencySync = "alice-found" })
	})
	answer, err = ask(as(t, "jane"), storage, "environments/rediscover", "alice", &configbutler.Rediscovery{})
	if err != nil {
		t.Fatal(err)
	}
	wait()
	if noted.Type != configbutler.EnvironmentRequestRediscover || noted.Actor != "jane" {
		t.Errorf("noted %+v", noted)
	}
	want := "What workloads refer to has been found anew: Synced"
	if !answer.Status.Accepted || answer.Status.Message != want || !slices.Equal(answer.Status.SyncStatuses, []string{"alice-found"}) {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
}
