// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// as is a request for the namespace of these tests, of a user unless the name is empty.
func as(t *testing.T, name string) context.Context {
	t.Helper()
	if name == "" {
		return in(t)
	}
	return genericapirequest.WithUser(in(t), &user.DefaultInfo{Name: name})
}

func catalog() *configbutler.AppCatalog {
	return &configbutler.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: configbutler.AppCatalogSpec{
			SourceNamespace: "production", Workloads: []configbutler.WorkloadReference{{Kind: configbutler.WorkloadDeployment, Name: "web"}},
			HistoryLimit: new(int32(1)), Secrets: configbutler.CatalogSecretsRequester,
		},
	}
}

func createCatalog(ctx context.Context, storage *registry.Storage, obj *configbutler.AppCatalog) error {
	_, err := storage.Endpoints["appcatalogs"].(creator).Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

// editCatalog changes the catalog as it is stored, through an endpoint.
func editCatalog(
	ctx context.Context, storage *registry.Storage, endpoint string, change func(*configbutler.AppCatalog), dryRun ...string,
) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		edited := old.DeepCopyObject().(*configbutler.AppCatalog)
		change(edited)
		return edited, nil
	})
	_, _, err := storage.Endpoints[endpoint].(rest.Updater).Update(toward(ctx, endpoint), "shop", info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	return err
}

func storedCatalog(t *testing.T, storage *registry.Storage) *configbutler.AppCatalog {
	t.Helper()
	obj, err := storage.Endpoints["appcatalogs"].(rest.Getter).Get(in(t), "shop", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*configbutler.AppCatalog)
}

// waiting lists the edits of the catalog, as "generation actor".
func waiting(t *testing.T, storage *registry.Storage) []string {
	t.Helper()
	var out []string
	for _, e := range storedCatalog(t, storage).Status.PendingEdits {
		if !e.Time.Time.Equal(noon) {
			t.Errorf("time of generation %d = %s, want noon", e.Generation, e.Time)
		}
		out = append(out, fmt.Sprint(e.Generation, " ", e.Actor))
	}
	return out
}

// limit changes the spec.
func limit(n int32) func(*configbutler.AppCatalog) {
	return func(o *configbutler.AppCatalog) { o.Spec.HistoryLimit = &n }
}

// TestEditsAreKept shows who is noted to have edited a catalog, step by step.
func TestEditsAreKept(t *testing.T) {
	storage := newStorage(t)
	forged := catalog()
	forged.Status.PendingEdits = []configbutler.CatalogEdit{{Generation: 1, Actor: "other-user"}}
	if err := createCatalog(as(t, "jane"), storage, forged); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name, user string
		do         func(*configbutler.AppCatalog)
		want       []string
	}{
		{"nothing", "joe", func(*configbutler.AppCatalog) {}, []string{"1 jane"}},
		{"a label", "joe", func(o *configbutler.AppCatalog) { o.Labels = map[string]string{"a": "b"} }, []string{"1 jane"}},
		{"a status", "joe", func(o *configbutler.AppCatalog) { o.Status.PendingEdits = nil }, []string{"1 jane"}},
		{"another user", "joe", limit(2), []string{"1 jane", "2 joe"}},
		{"the same user", "joe", limit(3), []string{"1 jane", "3 joe"}},
		{"the first user", "jane", limit(4), []string{"1 jane", "3 joe", "4 jane"}},
		{"no user", "", limit(5), []string{"1 jane", "3 joe", "4 jane"}},
		{"an anonymous user", user.Anonymous, limit(6), []string{"1 jane", "3 joe", "4 jane"}},
		{"with a forged status", "joe", func(o *configbutler.AppCatalog) {
			limit(7)(o)
			o.Status.PendingEdits = []configbutler.CatalogEdit{{Generation: 7, Actor: "other-user"}}
		}, []string{"1 jane", "3 joe", "4 jane", "7 joe"}},
	}
	for _, step := range steps {
		if err := editCatalog(as(t, step.user), storage, "appcatalogs", step.do); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, waiting(t, storage)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if got := storedCatalog(t, storage).Generation; got != 7 {
		t.Errorf("generation = %d, want 7", got)
	}
	if err := editCatalog(as(t, "jane"), storage, "appcatalogs", limit(8), metav1.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(steps[len(steps)-1].want, waiting(t, storage)); diff != "" {
		t.Errorf("after a dry run (-want +got):\n%s", diff)
	}
}

func TestEditsDoNotPileUp(t *testing.T) {
	storage := newStorage(t)
	users := []string{"jane", "joe"}
	if err := createCatalog(as(t, users[0]), storage, catalog()); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 16; i++ {
		if err := editCatalog(as(t, users[i%2]), storage, "appcatalogs", limit(int32(i+1))); err != nil {
			t.Fatalf("edit %d: %v", i, err)
		}
	}
	before := storedCatalog(t, storage)
	err := editCatalog(as(t, "jane"), storage, "appcatalogs", limit(17))
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "16 changes of this catalog") {
		t.Errorf("an edit too many: %v", err)
	}
	if diff := cmp.Diff(before, storedCatalog(t, storage)); diff != "" {
		t.Errorf("it has changed something (-want +got):\n%s", diff)
	}
	for name, checkSuspended := range map[string]error{
		"metadata by another user": editCatalog(as(t, "jane"), storage, "appcatalogs", func(o *configbutler.AppCatalog) {
			o.Labels = map[string]string{"a": "b"}
		}),
		"a status, whatever spec comes with it": editCatalog(in(t), storage, "appcatalogs/status", func(o *configbutler.AppCatalog) {
			limit(20)(o)
			o.Status.Revision = 1
		}),
		"the same user": editCatalog(as(t, "joe"), storage, "appcatalogs", limit(18)),
	} {
		if checkSuspended != nil {
			t.Errorf("%s: %v", name, checkSuspended)
		}
	}
	got := storedCatalog(t, storage)
	if *got.Spec.HistoryLimit != 18 || got.Status.Revision != 1 || got.Labels["a"] != "b" || len(got.Status.PendingEdits) != 16 {
		t.Errorf("catalog = %+v", got)
	}
}

// TestNewestEditIsOfTheAuthorOfTheSpec checks that after concurrent edits, the newest edit names the user whose spec is
// stored.
func TestNewestEditIsOfTheAuthorOfTheSpec(t *testing.T) {
	storage := newStorage(t)
	if err := createCatalog(as(t, "jane"), storage, catalog()); err != nil {
		t.Fatal(err)
	}
	const users = 8
	failures := make([]error, users)
	var group sync.WaitGroup
	for i := range users {
		ctx := as(t, fmt.Sprint("user-", i))
		group.Go(func() { failures[i] = editCatalog(ctx, storage, "appcatalogs", limit(int32(i+10))) })
	}
	group.Wait()
	for i, err := range failures {
		if err != nil {
			t.Errorf("user %d: %v", i, err)
		}
	}
	got := storedCatalog(t, storage)
	edits := got.Status.PendingEdits
	if len(edits) != users+1 ||
		!slices.IsSortedFunc(edits, func(a, b configbutler.CatalogEdit) int { return int(a.Generation - b.Generation) }) {
		t.Fatalf("edits = %+v", edits)
	}
	newest := edits[users]
	if want := fmt.Sprint("user-", *got.Spec.HistoryLimit-10); newest.Actor != want || newest.Generation != got.Generation {
		t.Errorf("newest edit = %+v of generation %d, want one of %s", newest, got.Generation, want)
	}
}

// A controller that writes a status by what it read a while ago brings no request back, and adds none.
func TestNoControllerForgesRequests(t *testing.T) {
	storage := newStorage(t)
	if err := createCatalog(as(t, "jane"), storage, catalog()); err != nil {
		t.Fatal(err)
	}
	if err := editCatalog(as(t, "joe"), storage, "appcatalogs", limit(2)); err != nil {
		t.Fatal(err)
	}
	type status = *configbutler.AppCatalogStatus
	for name, forgery := range map[string]struct {
		do   func(status)
		path string
	}{
		"another actor":      {func(s status) { s.PendingEdits[1].Actor = "jane" }, "status.pendingEdits[1]"},
		"another generation": {func(s status) { s.PendingEdits[0].Generation = 5 }, "status.pendingEdits[0]"},
		"another time":       {func(s status) { s.PendingEdits[0].Time = metav1.NewTime(noon.Add(-time.Hour)) }, "status.pendingEdits[0]"},
		"another edit": {func(s status) {
			s.PendingEdits = append(s.PendingEdits, configbutler.CatalogEdit{Generation: 3, Actor: "jane"})
		}, "status.pendingEdits[2]"},
		"a request": {func(s status) {
			s.PendingSyncs = []configbutler.PendingCatalogSync{{ID: "1", Actor: "jane"}}
		}, "status.pendingSyncs[0]"},
	} {
		err := editCatalog(in(t), storage, "appcatalogs/status", func(o *configbutler.AppCatalog) { forgery.do(&o.Status) })
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), forgery.path+": Forbidden: only the server adds entries") {
			t.Errorf("%s: %v, want an error about %s", name, err, forgery.path)
		}
	}
	if diff := cmp.Diff([]string{"1 jane", "2 joe"}, waiting(t, storage)); diff != "" {
		t.Errorf("edits (-want +got):\n%s", diff)
	}
	taken := func(o *configbutler.AppCatalog) {
		o.Status.ObservedGeneration, o.Status.PendingEdits = 1, o.Status.PendingEdits[1:]
	}
	if err := editCatalog(in(t), storage, "appcatalogs/status", taken); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2 joe"}, waiting(t, storage)); diff != "" {
		t.Errorf("after the first was taken out (-want +got):\n%s", diff)
	}
}

// TestWhoAnswersForACatalog checks that a user who has a catalog show more is responsible for all of it, since that
// needs the right to read it.
func TestWhoAnswersForACatalog(t *testing.T) {
	web := configbutler.WorkloadReference{Kind: configbutler.WorkloadDeployment, Name: "web"}
	shadowed := catalog()
	shadowed.Spec.PreviewOnly, shadowed.Spec.Workloads = true,
		append(shadowed.Spec.Workloads, configbutler.WorkloadReference{Kind: web.Kind, Name: "api"})
	shadowed.Status.EditedBy = &configbutler.AutomatedBy{Username: "other-user"}
	for _, test := range []struct {
		name, user string
		change     func(*configbutler.AppCatalog)
		want       string
	}{
		{"nothing", "joe", func(*configbutler.AppCatalog) {}, "jane"},
		{"how many revisions are kept", "joe", limit(5), "jane"},
		{"a workload less", "joe", func(o *configbutler.AppCatalog) { o.Spec.Workloads = []configbutler.WorkloadReference{web} }, "jane"},
		{"a pause", "joe", func(o *configbutler.AppCatalog) { o.Spec.PauseUntil = new(metav1.NewTime(noon)) }, "jane"},
		{"the status", "joe", func(o *configbutler.AppCatalog) { o.Status.EditedBy.Username = "joe" }, "jane"},
		{"a patch", "joe", func(o *configbutler.AppCatalog) {
			o.Spec.Patches = []configbutler.Patch{
				{Target: configbutler.PatchTarget{Kind: "Deployment"}, Type: configbutler.PatchMerge, Patch: "spec: {paused: true}"},
			}
		}, "joe"},
		{"Secrets", "joe", func(o *configbutler.AppCatalog) { o.Spec.Secrets = configbutler.CatalogSecretsShared }, "joe"},
		{"what was only shown", "joe", func(o *configbutler.AppCatalog) { o.Spec.PreviewOnly = false }, "joe"},
		{"what was only shown, without a user", "", func(o *configbutler.AppCatalog) { o.Spec.PreviewOnly = false }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage := newStorage(t)
			if err := createCatalog(as(t, "jane"), storage, shadowed.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if err := editCatalog(as(t, test.user), storage, "appcatalogs", test.change); err != nil {
				t.Fatal(err)
			}
			got := ""
			if by := storedCatalog(t, storage).Status.EditedBy; by != nil {
				got = by.Username
			}
			if got != test.want {
				t.Errorf("edited by %q, want %q", got, test.want)
			}
			forge := func(o *configbutler.AppCatalog) { o.Status.EditedBy = &configbutler.AutomatedBy{Username: "root"} }
			err := editCatalog(in(t), storage, "appcatalogs/status", forge)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.editedBy: Forbidden: only the server writes it") {
				t.Errorf("forged: %v", err)
			}
		})
	}
}

func TestNoControllerForgesRequestsToADestination(t *testing.T) {
	storage := newStorage(t)
	forged := create(t, storage, "gitdestinations", destination()).(*configbutler.GitDestination)
	forged.Status.PendingSyncs = []configbutler.PendingSync{{ID: "1", Full: true}}
	_, err := update(t, storage, "gitdestinations/status", forged)
	if err == nil || !strings.Contains(err.Error(), "status.pendingSyncs[0]: Forbidden: only the server adds entries") {
		t.Errorf("a forged request: %v", err)
	}
}

// Each change of a rule's spec takes the right to read all that it selects.
func TestWhoAnswersForARule(t *testing.T) {
	storage := newStorage(t)
	rule := &configbutler.WatchRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rule"},
		Spec: configbutler.WatchRuleSpec{
			DestinationRef: configbutler.ObjectReference{Name: "main"},
			Rules:          []configbutler.ResourceRule{{Name: "a", Resources: []string{"configmaps"}}},
		},
		Status: configbutler.WatchRuleStatus{EditedBy: &configbutler.AutomatedBy{Username: "other-user"}},
	}
	if _, err := storage.Endpoints["watchrules"].(creator).Create(as(t, "jane"), rule, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	edit := func(user, endpoint string, change func(*configbutler.WatchRule)) (*configbutler.AutomatedBy, error) {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			edited := old.DeepCopyObject().(*configbutler.WatchRule)
			change(edited)
			return edited, nil
		})
		obj, _, err := storage.Endpoints[endpoint].(rest.Updater).Update(toward(as(t, user), endpoint), "rule", info,
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if err != nil {
			return nil, err
		}
		return obj.(*configbutler.WatchRule).Status.EditedBy, nil
	}
	for _, step := range []struct {
		name, user string
		change     func(*configbutler.WatchRule)
		want       string
	}{
		{"a label", "joe", func(o *configbutler.WatchRule) { o.Labels = map[string]string{"a": "b"} }, "jane"},
		{"a status", "joe", func(o *configbutler.WatchRule) { o.Status.EditedBy.Username = "joe" }, "jane"},
		{"a name", "joe", func(o *configbutler.WatchRule) { o.Spec.Rules[0].Name = "b" }, "joe"},
	} {
		if by, err := edit(step.user, "watchrules", step.change); err != nil || by == nil || by.Username != step.want {
			t.Errorf("%s: edited by %+v, %v; want %s", step.name, by, err, step.want)
		}
	}
	_, err := edit("", "watchrules/status", func(o *configbutler.WatchRule) { o.Status.EditedBy = nil })
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.editedBy: Forbidden: only the server writes it") {
		t.Errorf("forged: %v", err)
	}
}
