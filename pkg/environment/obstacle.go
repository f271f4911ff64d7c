// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// findObstacle returns why an environment cannot be synced until an object changes, ok if it can be. catalog is nil
// if it does not exist.
func (c *environments) findObstacle(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) conditions.Reason {
	ref := e.Spec.CatalogRef
	namespace := cmp.Or(ref.Namespace, e.Namespace)
	if catalog == nil {
		return conditions.Reasonf(v1alpha1.ReasonCatalogNotFound, "There is no AppCatalog %s/%s", namespace, ref.Name)
	}
	if found := c.neighbourhood(e, catalog).Check(e); len(found) > 0 {
		return conditions.Reason{Code: found[0].Reason, Message: found[0].String()}
	}
	switch {
	case catalog.Status.Revision == 0:
		return conditions.Reason{Code: v1alpha1.ReasonCatalogNotReady,
			Message: fmt.Sprintf("AppCatalog %s/%s offers nothing yet; its conditions say why", namespace, ref.Name)}
	case !c.hasTarget(e) && !e.Spec.CreateNamespace:
		return conditions.Reason{Code: v1alpha1.ReasonTargetNotFound,
			Message: fmt.Sprintf("There is no namespace %s, and spec.createNamespace is false", e.Spec.TargetNamespace)}
	}
	return conditions.Reason{}
}

// neighbourhood returns the catalogs and environments that can exclude an environment.
func (c *environments) neighbourhood(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) *placement.Cluster {
	target := e.Spec.TargetNamespace
	// The index was added before the informer was started.
	sources, _ := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ByIndex(bySource, target)
	n := &placement.Cluster{
		Own: c.config.Namespace, Environments: c.indexed(byTarget, target), Labels: c.labelsOf,
		Catalogs: append(as[*v1alpha1.AppCatalog](sources), catalog),
	}
	if base := e.Spec.BaseEnvironmentRef; base != nil {
		found, err := c.informers.Configbutler().V1alpha1().Environments().Lister().Environments(e.Namespace).Get(base.Name)
		if err == nil && found.Spec.TargetNamespace != target {
			n.Environments = append(n.Environments, found)
		}
	}
	return n
}

// labelsOf returns the labels of a namespace; false if it does not exist.
func (c *environments) labelsOf(namespace string) (labels.Set, bool) {
	found, there := c.shared.Namespaces.Get(namespace)
	return found.Labels, there
}

// hasTarget reports whether the target namespace exists.
func (c *environments) hasTarget(e *v1alpha1.Environment) bool {
	_, there := c.shared.Namespaces.Get(e.Spec.TargetNamespace)
	return there
}
