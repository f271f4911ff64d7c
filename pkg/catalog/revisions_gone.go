// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// gone are the catalogs that have been deleted and of which revisions may be left, by their source.
type gone struct {
	mu       sync.Mutex
	catalogs map[string][]types.UID
}

func (g *gone) add(catalog *v1alpha1.AppCatalog) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.catalogs == nil {
		g.catalogs = map[string][]types.UID{}
	}
	g.catalogs[catalog.Spec.SourceNamespace] = append(g.catalogs[catalog.Spec.SourceNamespace], catalog.UID)
}

// take returns those of a source, once.
func (g *gone) take(source string) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer delete(g.catalogs, source)
	return g.catalogs[source]
}

// dropGone removes the revisions of the catalogs of a source that have been deleted. Nobody writes any meanwhile, because
// each source is looked after by one worker. What cannot be removed now is when the server starts.
func (c *catalogs) dropGone(ctx context.Context, namespace string) error {
	var errs []error
	for _, uid := range c.gone.take(namespace) {
		errs = append(errs, c.keeper.revisions.drop(ctx, uid))
	}
	return utilerrors.NewAggregate(errs)
}

// dropForgotten removes the revisions of catalogs that were deleted while nobody looked.
func (c *catalogs) dropForgotten(ctx context.Context) error {
	kept, err := c.keeper.revisions.catalogs(ctx)
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(kept)) {
		there, err := c.keeper.api.AppCatalogs(kept[uid].Namespace).Get(ctx, kept[uid].Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && there.UID != uid:
			err = c.keeper.revisions.drop(ctx, uid)
		case err != nil:
			err = fmt.Errorf("look whether AppCatalog %s is there: %w", kept[uid], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop removes all that is kept of a catalog.
func (r *revisions) drop(ctx context.Context, uid types.UID) error {
	for _, prefix := range []string{manifestsOf(uid), headsOf(uid)} {
		if err := r.deleteAll(ctx, prefix); err != nil {
			return fmt.Errorf("remove the revisions of a catalog that is gone: %w", err)
		}
	}
	if err := r.table.Delete(ctx, catalogRow(uid)); err != nil {
		return fmt.Errorf("remove the revisions of a catalog that is gone: %w", err)
	}
	return nil
}

// catalogs are the names of those of which there may be rows, by uid.
func (r *revisions) catalogs(ctx context.Context) (map[types.UID]types.NamespacedName, error) {
	out := map[types.UID]types.NamespacedName{}
	prefix := catalogRow("")
	for row, err := range r.table.Scan(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("look whose revisions are kept: %w", err)
		}
		namespace, name, _ := strings.Cut(string(row.Value), "/")
		out[types.UID(row.Key[len(prefix):])] = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return out, nil
}
