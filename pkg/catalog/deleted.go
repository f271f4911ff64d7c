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
)

// deletedCatalogs holds the UIDs of deleted catalogs whose revisions are still stored, by source namespace.
type deletedCatalogs struct {
	mu       sync.Mutex
	bySource map[string][]types.UID
}

func (d *deletedCatalogs) add(catalog *v1alpha1.AppCatalog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bySource == nil {
		d.bySource = map[string][]types.UID{}
	}
	d.bySource[catalog.Spec.SourceNamespace] = append(d.bySource[catalog.Spec.SourceNamespace], catalog.UID)
}

// take removes and returns the deleted catalogs of a source.
func (d *deletedCatalogs) take(source string) []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer delete(d.bySource, source)
	return d.bySource[source]
}

// deleteRevisions deletes the revisions of the deleted catalogs of a source. Only one worker handles a source at a time, so
// none is written meanwhile. What fails here is deleted when the server starts.
func (c *catalogs) deleteRevisions(ctx context.Context, namespace string) error {
	var errs []error
	for _, uid := range c.deleted.take(namespace) {
		errs = append(errs, c.keeper.revisions.Delete(ctx, uid))
	}
	return utilerrors.NewAggregate(errs)
}

// deleteOrphanedRevisions deletes the revisions of catalogs that were deleted while no server was running.
func (c *catalogs) deleteOrphanedRevisions(ctx context.Context) error {
	stored, err := c.keeper.revisions.Catalogs(ctx)
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(stored)) {
		catalog, err := c.keeper.api.AppCatalogs(stored[uid].Namespace).Get(ctx, stored[uid].Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && catalog.UID != uid:
			err = c.keeper.revisions.Delete(ctx, uid)
		case err != nil:
			err = fmt.Errorf("read AppCatalog %s: %w", stored[uid], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
