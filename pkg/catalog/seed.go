// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// seed makes known what catalogs have last seen of their sources. Otherwise, until they have been compared, whoever writes a
// status or scales would be taken for somebody who changes a workload.
func (c *catalogs) seed(ctx context.Context) error {
	all, err := c.informers.Configbutler().V1alpha1().AppCatalogs().Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("read the AppCatalogs: %w", err)
	}
	catalogs := map[types.UID]*v1alpha1.AppCatalog{}
	for _, catalog := range all {
		if c.interests.set(catalog) == nil { // What cannot be read is told when it is taken up.
			catalogs[catalog.UID] = catalog
		}
	}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.keeper.api.CatalogWorkloads(metav1.NamespaceAll).List(ctx, options)
	})
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if held, ok := object.(*v1alpha1.CatalogWorkload); ok {
			c.recall(catalogs, held)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the CatalogWorkloads: %w", err)
	}
	return nil
}

// recall makes known what a catalog has last seen of one workload. One that was missing has no hash.
func (c *catalogs) recall(catalogs map[types.UID]*v1alpha1.AppCatalog, held *v1alpha1.CatalogWorkload) {
	owner, seen := metav1.GetControllerOfNoCopy(held), held.Status.Source.Hash
	if owner == nil || seen == "" && !held.Status.Missing {
		return
	}
	if catalog := catalogs[owner.UID]; catalog != nil {
		c.interests.taken(catalog, map[reference]string{{Kind: held.Status.Kind, Name: held.Status.Name}: seen})
	}
}
