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

// seed initializes the filter with the source content that catalogs have last observed. Without that, updates of a status or of the
// replicas would pass the filter until the first comparison, and their users would be recorded as authors.
func (r *reconciler) seed(ctx context.Context) error {
	all, err := r.shared.Informers.Configbutler().V1alpha1().AppCatalogs().Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list AppCatalogs: %w", err)
	}
	catalogs := map[types.UID]*v1alpha1.AppCatalog{}
	for _, catalog := range all {
		if r.filter.set(catalog) == nil { // catalogChanged logs the error.
			catalogs[catalog.UID] = catalog
		}
	}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.updater.api.CatalogWorkloads(metav1.NamespaceAll).List(ctx, options)
	})
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if held, ok := object.(*v1alpha1.CatalogWorkload); ok {
			r.seedWorkload(catalogs, held)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list CatalogWorkloads: %w", err)
	}
	return nil
}

// seedWorkload initializes the filter with the content of one workload. A missing workload has no hash.
func (r *reconciler) seedWorkload(catalogs map[types.UID]*v1alpha1.AppCatalog, held *v1alpha1.CatalogWorkload) {
	owner, hash := metav1.GetControllerOfNoCopy(held), held.Status.Source.Hash
	if owner == nil || hash == "" && !held.Status.Missing {
		return
	}
	if catalog := catalogs[owner.UID]; catalog != nil {
		r.filter.observed(catalog, map[reference]string{{Kind: held.Status.Kind, Name: held.Status.Name}: hash})
	}
}
