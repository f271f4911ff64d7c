// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// obstacles finds why environments cannot be synced.
type obstacles struct {
	// own is the namespace of the server. Empty if the server has none.
	own    string
	caches *caches
}

// find returns why an environment cannot be synced until an object changes, the zero Reason if it can be. catalog is nil if it does not
// exist.
func (o *obstacles) find(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) conditions.Reason {
	name := e.Spec.CatalogRef.NamespacedName(e.Namespace)
	if catalog == nil {
		return conditions.Reasonf(v1alpha1.ReasonCatalogNotFound, "There is no AppCatalog %s", name)
	}
	if found := o.cluster(e, catalog).Check(e); len(found) > 0 {
		return conditions.Reason{Code: found[0].Reason, Message: found[0].String()}
	}
	switch {
	case catalog.Status.Revision == 0:
		return conditions.Reason{Code: v1alpha1.ReasonCatalogNotReady,
			Message: fmt.Sprintf("AppCatalog %s offers nothing yet; its conditions say why", name)}
	case !o.caches.hasTarget(e) && !e.Spec.CreateNamespace:
		return conditions.Reason{Code: v1alpha1.ReasonTargetNotFound,
			Message: fmt.Sprintf("There is no namespace %s, and spec.createNamespace is false", e.Spec.TargetNamespace)}
	}
	return conditions.Reason{}
}

// cluster returns the catalogs and environments that can exclude an environment.
func (o *obstacles) cluster(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) *placement.Cluster {
	target := e.Spec.TargetNamespace
	n := &placement.Cluster{
		Own: o.own, Environments: o.caches.environmentsBy(byTarget, target), Labels: o.caches.labelsOf,
		Catalogs: append(o.caches.catalogsOf(target), catalog),
	}
	if base := o.caches.baseOf(e); base != nil && base.Spec.TargetNamespace != target {
		n.Environments = append(n.Environments, base)
	}
	return n
}
