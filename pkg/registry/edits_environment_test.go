// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry"
)

type envt = *configbutler.Environment

func environment() envt {
	return &configbutler.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alice"},
		Spec: configbutler.EnvironmentSpec{
			CatalogRef: configbutler.ObjectReference{Name: "shop"}, TargetNamespace: "shop-alice", Type: configbutler.EnvironmentShared,
			Adapt: configbutler.Adaptation{
				Replicas: configbutler.ReplicasOne, CronJobs: configbutler.CronJobsSuspend, LoadBalancers: configbutler.LoadBalancersClusterIP,
				IngressHosts: configbutler.IngressHosts{Type: configbutler.IngressHostsOmit},
			},
			HistoryLimit: new(int32(10)), DeletionPolicy: configbutler.DeletionPolicyDelete,
		},
	}
}

// editEnvironment changes the environment as it is stored, through an endpoint.
func editEnvironment(ctx context.Context, storage *registry.Storage, endpoint string, change func(envt)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		edited := old.DeepCopyObject().(envt)
		change(edited)
		return edited, nil
	})
	_, _, err := storage.Endpoints[endpoint].(rest.Updater).Update(toward(ctx, endpoint), "alice", info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

func createEnvironment(ctx context.Context, t *testing.T, storage *registry.Storage, obj envt) {
	t.Helper()
	if _, err := storage.Endpoints["environments"].(creator).Create(ctx, obj, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func storedEnvironment(t *testing.T, storage *registry.Storage) envt {
	t.Helper()
	obj, err := storage.Endpoints["environments"].(rest.Getter).Get(in(t), "alice", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(envt)
}

// environmentEdits lists the edits of the environment, as "generation actor fields".
func environmentEdits(t *testing.T, storage *registry.Storage) []string {
	t.Helper()
	var out []string
	for _, e := range storedEnvironment(t, storage).Status.PendingEdits {
		if !e.Time.Time.Equal(noon) {
			t.Errorf("time of generation %d = %s, want noon", e.Generation, e.Time)
		}
		out = append(out, strings.TrimSpace(fmt.Sprint(e.Generation, " ", e.Actor, " ", strings.Join(e.Fields, ","))))
	}
	return out
}

// TestEditsOfEnvironmentsAreKept shows who is noted to have edited an environment, and which fields, step by step.
func TestEditsOfEnvironmentsAreKept(t *testing.T) {
	storage := newStorage(t)
	forged := environment()
	forged.Status.PendingEdits = []configbutler.EnvironmentEdit{{Generation: 1, Actor: "other-user"}}
	createEnvironment(as(t, "jane"), t, storage, forged)
	before := []string{"1 jane"}
	for _, step := range []struct {
		name, user string
		do         func(envt)
		want       []string
	}{
		{"a label", "joe", func(o envt) { o.Labels = map[string]string{"a": "b"} }, nil},
		{"a status", "joe", func(o envt) { o.Status.PendingEdits = nil }, nil},
		{"a field that was absent", "joe", func(o envt) { o.Spec.AutoSync = true }, []string{"1 jane", "2 joe autoSync"}},
		{"more by the same user", "joe", func(o envt) { o.Spec.HistoryLimit = new(int32(5)) }, []string{"1 jane", "3 joe autoSync,historyLimit"}},
		{"a field within a field", "jane", func(o envt) { o.Spec.Adapt.CronJobs = configbutler.CronJobsAsSource }, []string{
			"1 jane", "3 joe autoSync,historyLimit", "4 jane adapt",
		}},
		{"a field that is taken out", "jane", func(o envt) { o.Spec.AutoSync = false }, []string{
			"1 jane", "3 joe autoSync,historyLimit", "5 jane adapt,autoSync",
		}},
		{"no user", "", func(o envt) { o.Spec.HistoryLimit = new(int32(6)) }, nil},
	} {
		if err := editEnvironment(as(t, step.user), storage, "environments", step.do); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.want == nil {
			step.want = before
		}
		if diff := cmp.Diff(step.want, environmentEdits(t, storage)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		before = step.want
	}
}

func TestEditsOfEnvironmentsDoNotPileUp(t *testing.T) {
	storage := newStorage(t)
	users := []string{"jane", "joe"}
	createEnvironment(as(t, users[0]), t, storage, environment())
	edit := func(i int) error {
		return editEnvironment(as(t, users[i%2]), storage, "environments", func(o envt) { o.Spec.HistoryLimit = new(int32(i + 20)) })
	}
	for i := 1; i < 16; i++ {
		if err := edit(i); err != nil {
			t.Fatalf("edit %d: %v", i, err)
		}
	}
	before := storedEnvironment(t, storage)
	if err := edit(16); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "16 changes of this environment") {
		t.Errorf("an edit too many: %v", err)
	}
	if diff := cmp.Diff(before, storedEnvironment(t, storage)); diff != "" {
		t.Errorf("it has changed something (-want +got):\n%s", diff)
	}
	if err := edit(17); err != nil {
		t.Errorf("the same user: %v", err)
	}
}

// branch is an environment of two workloads.
func branch() envt {
	o := environment()
	o.Spec.Type = configbutler.EnvironmentBranch
	o.Spec.BranchWorkloads = []configbutler.WorkloadReference{{Kind: "Deployment", Name: "web"}, {Kind: "Deployment", Name: "api"}}
	return o
}

// TestWhoAnswersForAutomaticSyncs changes an environment of which jane has turned automatic syncs on.
func TestWhoAnswersForAutomaticSyncs(t *testing.T) {
	patch := configbutler.Patch{
		Target: configbutler.PatchTarget{Kind: "Deployment", Name: "web"}, Type: configbutler.PatchMerge, Patch: `{"spec":{"paused":true}}`,
	}
	for _, test := range []struct {
		name, user string
		change     func(envt)
		want       string
	}{
		{"nothing", "joe", func(envt) {}, "jane"},
		{"a label", "joe", func(o envt) { o.Labels = map[string]string{"a": "b"} }, "jane"},
		{"off", "joe", func(o envt) { o.Spec.AutoSync = false }, ""},
		{"off without a user", "", func(o envt) { o.Spec.AutoSync = false }, ""},
		{"when", "joe", func(o envt) { o.Spec.SyncWindows = nil }, "jane"},
		{"how it ends", "joe", func(o envt) {
			o.Spec.TTL, o.Spec.DeletionPolicy = &metav1.Duration{Duration: time.Hour}, configbutler.DeletionPolicyOrphan
		}, "jane"},
		{"how many revisions are kept", "joe", func(o envt) { o.Spec.HistoryLimit = new(int32(5)) }, "jane"},
		{"fewer workloads", "joe", func(o envt) { o.Spec.BranchWorkloads = o.Spec.BranchWorkloads[:1] }, "jane"},
		{"no namespace created", "joe", func(o envt) { o.Spec.CreateNamespace = false }, "jane"},
		{"more workloads", "joe", func(o envt) {
			o.Spec.BranchWorkloads = append(o.Spec.BranchWorkloads, configbutler.WorkloadReference{Kind: "Job", Name: "seed"})
		}, "joe"},
		{"more without a user", "", func(o envt) { o.Spec.Patches = []configbutler.Patch{patch} }, ""},
		{"patches", "joe", func(o envt) { o.Spec.Patches = []configbutler.Patch{patch} }, "joe"},
		{"adaptations", "joe", func(o envt) { o.Spec.Adapt.Replicas = configbutler.ReplicasAsSource }, "joe"},
		{"more that is included", "joe", func(o envt) {
			o.Spec.Include = append(o.Spec.Include, configbutler.IncludedObject{APIVersion: "v1", Kind: "Secret", Name: "root"})
		}, "joe"},
		{"less that is included", "joe", func(o envt) { o.Spec.Include = nil }, "jane"},
		{"another account", "joe", func(o envt) { o.Spec.ServiceAccountName = "syncs" }, "joe"},
		{"a shadow no longer", "joe", func(o envt) { o.Spec.Shadow = false }, "joe"},
		{"the status", "joe", func(o envt) { o.Status.AutomatedBy.Username = "joe" }, "jane"},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage := newStorage(t)
			obj := branch()
			obj.Spec.AutoSync, obj.Spec.Shadow, obj.Spec.CreateNamespace = true, true, true
			obj.Spec.Include = []configbutler.IncludedObject{{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}}
			obj.Spec.SyncWindows = []configbutler.SyncWindow{{
				Name: "nightly", Kind: configbutler.SyncWindowAllow, Schedule: "0 22 * * *",
				Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC",
			}}
			obj.Status.AutomatedBy = &configbutler.AutomatedBy{Username: "other-user"}
			createEnvironment(as(t, "jane"), t, storage, obj)
			if err := editEnvironment(as(t, test.user), storage, "environments", test.change); err != nil {
				t.Fatal(err)
			}
			got := ""
			if by := storedEnvironment(t, storage).Status.AutomatedBy; by != nil {
				got = by.Username
			}
			if got != test.want {
				t.Errorf("automated by %q, want %q", got, test.want)
			}
		})
	}
}

// TestUserWhoTurnsAutomaticSyncsOnIsStored checks that everything is stored that a check of the user's permissions
// needs.
func TestUserWhoTurnsAutomaticSyncsOnIsStored(t *testing.T) {
	storage := newStorage(t)
	createEnvironment(as(t, "joe"), t, storage, environment())
	jane := genericapirequest.WithUser(in(t), &user.DefaultInfo{Name: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated}})
	if err := editEnvironment(jane, storage, "environments", func(o envt) { o.Spec.AutoSync = true }); err != nil {
		t.Fatal(err)
	}
	want := &configbutler.AutomatedBy{Username: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated}, Time: metav1.NewTime(noon)}
	if diff := cmp.Diff(want, storedEnvironment(t, storage).Status.AutomatedBy); diff != "" {
		t.Errorf("automated by (-want +got):\n%s", diff)
	}
}

// TestUserWhoPinsAnEnvironmentIsStored shows whose permissions count for a revision that an environment is pinned to.
func TestUserWhoPinsAnEnvironmentIsStored(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, asIs)
	jane := genericapirequest.WithUser(in(t), &user.DefaultInfo{Name: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated}})
	if err := editEnvironment(jane, storage, "environments", func(o envt) { o.Spec.PinnedRevision = new(int64(3)) }); err != nil {
		t.Fatal(err)
	}
	edits := storedEnvironment(t, storage).Status.PendingEdits
	want := configbutler.EnvironmentEdit{
		Generation: 2, Actor: "jane", UID: "42", Groups: []string{"team", user.AllAuthenticated}, Time: metav1.NewTime(noon),
		Fields: []string{"pinnedRevision"},
	}
	if diff := cmp.Diff(want, edits[len(edits)-1]); diff != "" {
		t.Errorf("the last edit (-want +got):\n%s", diff)
	}
	forge := func(o envt) { o.Status.PendingEdits[0].Groups = []string{user.SystemPrivilegedGroup} }
	if err := editEnvironment(in(t), storage, "environments/status", forge); !apierrors.IsInvalid(err) {
		t.Errorf("other groups in the status: %v", err)
	}
}

// A controller that writes a status by what it read a while ago brings nothing back, and adds nothing.
func TestNoControllerForgesTheStatusOfAnEnvironment(t *testing.T) {
	storage := newStorage(t)
	obj := environment()
	obj.Spec.AutoSync = true
	createEnvironment(as(t, "jane"), t, storage, obj)
	type status = *configbutler.EnvironmentStatus
	for name, forgery := range map[string]struct {
		do   func(status)
		want string
	}{
		"another actor": {func(s status) { s.PendingEdits[0].Actor = "joe" }, "status.pendingEdits[0]: Forbidden: only the server adds"},
		"another field": {func(s status) { s.PendingEdits[0].Fields = []string{"pinnedRevision"} }, "status.pendingEdits[0]: Forbidden"},
		"another edit": {func(s status) {
			s.PendingEdits = append(s.PendingEdits, configbutler.EnvironmentEdit{Generation: 2, Actor: "joe"})
		}, "status.pendingEdits[1]: Forbidden"},
		"a request": {func(s status) {
			s.PendingRequests = []configbutler.PendingEnvironmentRequest{{ID: "1", Actor: "joe", Type: configbutler.EnvironmentRequestRediscover}}
		}, "status.pendingRequests[0]: Forbidden: only the server adds"},
		"another user": {func(s status) { s.AutomatedBy.Username = "root" }, "status.automatedBy: Forbidden: only the server writes it"},
		"more groups":  {func(s status) { s.AutomatedBy.Groups = []string{user.SystemPrivilegedGroup} }, "status.automatedBy: Forbidden"},
		"no user":      {func(s status) { s.AutomatedBy = nil }, "status.automatedBy: Forbidden"},
	} {
		err := editEnvironment(in(t), storage, "environments/status", func(o envt) { forgery.do(&o.Status) })
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), forgery.want) {
			t.Errorf("%s: %v, want %s", name, err, forgery.want)
		}
	}
	taken := func(o envt) { o.Status.ObservedGeneration, o.Status.PendingEdits = 1, nil }
	if err := editEnvironment(in(t), storage, "environments/status", taken); err != nil {
		t.Fatal(err)
	}
	got := storedEnvironment(t, storage).Status
	if len(got.PendingEdits) != 0 || got.AutomatedBy.Username != "jane" {
		t.Errorf("status = %+v", got)
	}
}
