// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// read is what the controller does with a request: it records what has changed, if anything has, as a batch of the request
// or of before, and drops the request.
func read(
	ctx context.Context, storage *registry.Storage, changed int32, before string, meanwhile func(*configbutler.AppCatalog),
) error {
	asked := func(catalog *configbutler.AppCatalog) bool { return len(catalog.Status.PendingSyncs) > 0 }
	return follow(ctx, storage, asked, func(catalog *configbutler.AppCatalog) error {
		request := catalog.Status.PendingSyncs[0]
		if changed > 0 {
			batch, step := request.ID, syncstatus.Step{To: v1alpha1.SyncStateApplied, By: request.Actor, At: noon}
			if before != "" {
				batch, step = before, syncstatus.Step{To: v1alpha1.SyncStateAutoApplied, At: noon}
			}
			record, err := newRecord(catalog, batch, step)
			if err != nil {
				return err
			}
			record.Status.WorkloadCount = changed
			if _, err := storage.Records.Write(ctx, record); err != nil {
				return err
			}
			catalog.Status.LatestSync = record.Name
		}
		if err := editCatalog(ctx, storage, "appcatalogs", meanwhile); err != nil {
			return err
		}
		return editCatalog(ctx, storage, "appcatalogs/status", func(c *configbutler.AppCatalog) {
			c.Status.PendingSyncs = nil
			if changed > 0 {
				c.Status.Revision, c.Status.LatestSync = c.Status.Revision+1, catalog.Status.LatestSync
			}
		})
	})
}

func TestCatalogSyncIsAnswered(t *testing.T) {
	asIs := func(*configbutler.AppCatalog) {}
	tests := map[string]struct {
		changed      int32
		before, want string
	}{
		"something has changed": {changed: 2, want: "The namespace production has been read; SyncStatus %s: 2 workloads changed by jane"},
		"something had begun to be gathered": {
			changed: 1, before: "b1", want: "The namespace production has been read; SyncStatus %s: 1 workload changed",
		},
		"nothing has": {want: "The namespace production has been read: nothing had changed that is not recorded already"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t)
			catalog := newCatalog(t, storage, asIs)
			done := make(chan error, 1)
			go func() { done <- read(in(t), storage, tt.changed, tt.before, asIs) }()
			answer, err := ask(as(t, "jane"), storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if tt.changed > 0 {
				if len(answer.Status.SyncStatuses) != 1 || !strings.HasPrefix(answer.Status.SyncStatuses[0], catalog.Name+"-") {
					t.Fatalf("answer %+v, want a SyncStatus", answer.Status)
				}
				want = fmt.Sprintf(want, answer.Status.SyncStatuses[0])
			}
			if !answer.Status.Accepted || answer.Status.Message != want || answer.Name != "shop" {
				t.Errorf("answer for %s: %+v, want %s", answer.Name, answer.Status, want)
			}
		})
	}
}

// The actor is who is authenticated, whatever the request says of itself.
func TestCatalogSyncIsDurable(t *testing.T) {
	storage := newStorage(t, impatient)
	newCatalog(t, storage, func(*configbutler.AppCatalog) {})
	request := &configbutler.CatalogSync{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"actor": "joe"}, Annotations: map[string]string{"configbutler.ai/actor": "joe"}},
		Status:     configbutler.RequestOutcome{Message: "by joe", SyncStatuses: []string{"other"}},
	}
	answer, err := ask(as(t, "jane"), storage, "appcatalogs/sync", "shop", request)
	if err != nil {
		t.Fatal(err)
	}
	pending := storedCatalog(t, storage).Status.PendingSyncs
	if len(pending) != 1 || pending[0].Actor != "jane" || !pending[0].Time.Time.Equal(noon) {
		t.Fatalf("recorded %+v", pending)
	}
	if !answer.Status.Accepted || answer.Status.ID != pending[0].ID || !strings.Contains(answer.Status.Message, pending[0].ID) || len(answer.Status.SyncStatuses) > 0 {
		t.Errorf("answer %+v", answer.Status)
	}
}

func TestCatalogSyncRefuses(t *testing.T) {
	until := metav1.NewTime(noon.Add(time.Hour))
	tests := map[string]struct {
		prepare func(*configbutler.AppCatalog)
		want    string
	}{
		"paused": {
			prepare: func(c *configbutler.AppCatalog) { c.Spec.PauseUntil = &until },
			want: `wait until 2026-05-04T13:00:00Z, which is its spec.pauseUntil; to end that: kubectl patch appcatalog shop -n shop ` +
				`--type=merge -p '{"spec":{"pauseUntil":null}}'`,
		},
		"pinned": {
			prepare: func(c *configbutler.AppCatalog) {
				c.Status.Revision, c.Status.History, c.Spec.PinnedRevision = 2, history(2, 1), new(int64(1))
			},
			want: `its spec.pinnedRevision is 1; to go forward: kubectl patch`,
		},
		"being deleted": {
			prepare: func(c *configbutler.AppCatalog) { c.Finalizers = []string{"example.com/hold"} }, want: "is being deleted",
		},
	}
	for name, tt := range tests {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			t.Run(fmt.Sprint(name, dryRun), func(t *testing.T) {
				storage := newStorage(t)
				catalog := newCatalog(t, storage, tt.prepare)
				if len(catalog.Finalizers) > 0 {
					if _, _, err := storage.Endpoints["appcatalogs"].(rest.GracefulDeleter).Delete(
						in(t), "shop", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				before := storedCatalog(t, storage)
				_, err := ask(as(t, "jane"), storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{}, dryRun...)
				if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if after := storedCatalog(t, storage); after.ResourceVersion != before.ResourceVersion {
					t.Errorf("the catalog has changed: %+v", after)
				}
			})
		}
	}
}

// Of many who ask at once, each has a request of its own, or is sent away.
func TestCatalogSyncsDoNotPileUp(t *testing.T) {
	storage := newStorage(t, impatient)
	newCatalog(t, storage, func(*configbutler.AppCatalog) {})
	const most, more = 16, 4
	answers := make(chan error, most+more)
	for i := range most + more {
		go func() {
			_, err := ask(as(t, fmt.Sprint("user-", i)), storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{})
			answers <- err
		}()
	}
	refused := 0
	for range most + more {
		if err := <-answers; apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), "16 requests wait for this catalog") {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	waiting := map[string]bool{}
	for _, request := range storedCatalog(t, storage).Status.PendingSyncs {
		waiting[request.Actor] = true
	}
	if refused != more || len(waiting) != most {
		t.Errorf("%d are sent away and %v wait, want %d and %d", refused, waiting, more, most)
	}
	if _, err := ask(as(t, "jane"), storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{},
		metav1.DryRunAll); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a dry run: %v", err)
	}
}

// TestCatalogSyncWithoutRecord checks the message of a request during which changes of the source begin to wait: it must not say that there
// were none.
func TestCatalogSyncWithoutRecord(t *testing.T) {
	storage := newStorage(t)
	newCatalog(t, storage, func(*configbutler.AppCatalog) {})
	done := make(chan error, 1)
	go func() {
		done <- read(in(t), storage, 0, "", func(catalog *configbutler.AppCatalog) {
			catalog.Spec.PauseUntil = new(metav1.NewTime(noon.Add(time.Hour)))
		})
	}()
	answer, err := ask(as(t, "jane"), storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.Status.Message, "Nothing is recorded: meanwhile changes of the source wait until 2026-05-04T13:00:00Z") {
		t.Errorf("answer %+v", answer.Status)
	}
}

func TestRequestsAreJudgedFirst(t *testing.T) {
	forbid := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(configbutler.Resource("appcatalogs"), "shop", nil)
	}
	elsewhere := metav1.ObjectMeta{Name: "other"}
	tests := map[string]struct {
		name    string
		request func(metav1.ObjectMeta) runtime.Object
	}{
		"appcatalogs/sync": {name: "shop", request: func(m metav1.ObjectMeta) runtime.Object { return &configbutler.CatalogSync{ObjectMeta: m} }},
		"appcatalogs/rollback": {name: "shop", request: func(m metav1.ObjectMeta) runtime.Object {
			return &configbutler.Rollback{ObjectMeta: m, Spec: configbutler.RollbackSpec{Revision: 1}}
		}},
		"syncstatuses/dismiss": {request: func(m metav1.ObjectMeta) runtime.Object { return &configbutler.Dismissal{ObjectMeta: m} }},
		"syncstatuses/retry":   {request: func(m metav1.ObjectMeta) runtime.Object { return &configbutler.Retry{ObjectMeta: m} }},
	}
	for endpoint, tt := range tests {
		t.Run(endpoint, func(t *testing.T) {
			storage := newStorage(t)
			catalog := newCatalog(t, storage, func(c *configbutler.AppCatalog) { c.Status.Revision, c.Status.History = 2, history(2, 1) })
			record := inState(t, storage, catalog, v1alpha1.SyncStateManualIntervention)
			name := tt.name
			if name == "" {
				name = record.Name
			}
			served := storage.Endpoints[endpoint].(rest.NamedCreater)
			create := func(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc) error {
				_, err := served.Create(ctx, name, obj, admit, &metav1.CreateOptions{})
				return err
			}
			asked := as(t, "jane")
			if err := create(asked, name, tt.request(elsewhere), nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") {
				t.Errorf("for another object: %v", err)
			}
			if err := create(asked, "none", tt.request(metav1.ObjectMeta{}), nil); !apierrors.IsNotFound(err) {
				t.Errorf("for nothing: %v", err)
			}
			if err := create(asked, name, tt.request(metav1.ObjectMeta{}), forbid); !apierrors.IsForbidden(err) {
				t.Errorf("admission refuses: %v", err)
			}
			if err := create(in(t), name, tt.request(metav1.ObjectMeta{}), nil); !apierrors.IsUnauthorized(err) {
				t.Errorf("without a user: %v", err)
			}
			if err := create(asked, name, &configbutler.MirrorSync{}, nil); !apierrors.IsBadRequest(err) {
				t.Errorf("another kind: %v", err)
			}
			if _, err := served.Create(as(t, "jane"), name, tt.request(metav1.ObjectMeta{}), nil,
				&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("dry run: %v", err)
			}
			if after := storedCatalog(t, storage); after.ResourceVersion != catalog.ResourceVersion {
				t.Errorf("the catalog has changed: %+v", after)
			}
			if after := storedRecord(t, storage, record.Name); after.ResourceVersion != record.ResourceVersion {
				t.Errorf("the record has changed: %+v", after)
			}
		})
	}
}
