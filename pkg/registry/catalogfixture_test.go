// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// impatient storage answers before anything can have come of a request.
func impatient(c *registry.Config) { c.WaitTimeout = time.Nanosecond }

// ask creates a request at a subresource.
func ask[R runtime.Object](ctx context.Context, storage *registry.Storage, endpoint, name string, request R, dryRun ...string) (R, error) {
	answer, err := storage.Endpoints[endpoint].(rest.NamedCreater).Create(ctx, name, request, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return *new(R), err
	}
	return answer.(R), nil
}

// newCatalog stores the AppCatalog shop as change makes it, its status included, with nothing left to do, and returns it.
func newCatalog(t *testing.T, storage *registry.Storage, change func(*configbutler.AppCatalog)) *configbutler.AppCatalog {
	t.Helper()
	wanted := catalog()
	change(wanted)
	if err := createCatalog(as(t, "eve"), storage, catalog()); err != nil {
		t.Fatal(err)
	}
	if err := editCatalog(in(t), storage, "appcatalogs/status", func(c *configbutler.AppCatalog) {
		by := c.Status.EditedBy
		c.Status = wanted.Status
		c.Status.EditedBy = by
	}); err != nil {
		t.Fatal(err)
	}
	if err := editCatalog(in(t), storage, "appcatalogs", func(c *configbutler.AppCatalog) {
		c.Spec, c.Finalizers = wanted.Spec, wanted.Finalizers
	}); err != nil {
		t.Fatal(err)
	}
	if err := editCatalog(in(t), storage, "appcatalogs/status", settle); err != nil {
		t.Fatal(err)
	}
	return storedCatalog(t, storage)
}

// settle makes the spec of a catalog one that has been taken over.
func settle(c *configbutler.AppCatalog) {
	c.Status.ObservedGeneration, c.Status.PendingEdits = c.Generation, nil
}

// history are revisions that can be gone back to, the newest first.
func history(revisions ...int64) []configbutler.CatalogRevision {
	var out []configbutler.CatalogRevision
	for _, revision := range revisions {
		out = append(out, configbutler.CatalogRevision{Revision: revision, Time: metav1.NewTime(noon)})
	}
	return out
}

// follow does once what the controller of catalogs does, as soon as the AppCatalog shop is as due says.
func follow(
	ctx context.Context, storage *registry.Storage, due func(*configbutler.AppCatalog) bool, do func(*configbutler.AppCatalog) error,
) error {
	watched, err := storage.Endpoints["appcatalogs"].(rest.Watcher).Watch(ctx, &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		if catalog := event.Object.(*configbutler.AppCatalog); due(catalog) {
			return do(catalog.DeepCopy())
		}
	}
	return ctx.Err()
}

// newRecord is a record of a batch of a catalog that begins with a step.
func newRecord(catalog *configbutler.AppCatalog, batch string, first syncstatus.Step) (*v1alpha1.SyncStatus, error) {
	return syncstatus.New(syncstatus.Creation{
		Namespace: namespace, DetectedAt: noon, First: first,
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeCatalog, Batch: batch,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: catalog.Name, UID: catalog.UID},
		},
	})
}
