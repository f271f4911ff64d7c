// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// garbageCollector deletes the stored revisions of deleted catalogs.
type garbageCollector struct {
	api       typed.AppCatalogsGetter
	revisions *revisions.Store

	mu sync.Mutex
	// deleted are the UIDs of deleted catalogs whose revisions are still stored, by source namespace.
	deleted map[string][]types.UID
}

// add records that a catalog has been deleted.
func (g *garbageCollector) add(catalog *v1alpha1.AppCatalog) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deleted == nil {
		g.deleted = map[string][]types.UID{}
	}
	g.deleted[catalog.Spec.SourceNamespace] = append(g.deleted[catalog.Spec.SourceNamespace], catalog.UID)
}

// take removes and returns the deleted catalogs of a source namespace.
func (g *garbageCollector) take(namespace string) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer delete(g.deleted, namespace)
	return g.deleted[namespace]
}

// collect deletes the revisions of the deleted catalogs of a source namespace. Only one worker reconciles a namespace at a time, so none
// is written meanwhile. Revisions whose deletion fails are deleted by collectOrphans at the next start.
func (g *garbageCollector) collect(ctx context.Context, namespace string) error {
	var errs []error
	for _, uid := range g.take(namespace) {
		errs = append(errs, g.revisions.Delete(ctx, uid))
	}
	return utilerrors.NewAggregate(errs)
}

// collectOrphans deletes the revisions of catalogs that were deleted while no server was running.
func (g *garbageCollector) collectOrphans(ctx context.Context) error {
	stored, err := g.revisions.Catalogs(ctx)
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(stored)) {
		catalog, err := g.api.AppCatalogs(stored[uid].Namespace).Get(ctx, stored[uid].Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && catalog.UID != uid:
			err = g.revisions.Delete(ctx, uid)
		case err != nil:
			err = fmt.Errorf("read AppCatalog %s: %w", stored[uid], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
