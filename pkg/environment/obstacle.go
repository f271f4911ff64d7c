// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// inTheWay says why nothing can be synced in an environment until somebody changes something.
func (c *environments) inTheWay(s *situation) verdict {
	for _, find := range []func(*situation) verdict{c.catalogTrouble, c.targetTrouble, c.baseTrouble} {
		if found := find(s); !found.ok() {
			return found
		}
	}
	return verdict{}
}

// catalogTrouble says why there is nothing that the environment can be built from.
func (c *environments) catalogTrouble(s *situation) verdict {
	ref := s.environment.Spec.CatalogRef
	namespace := cmp.Or(ref.Namespace, s.environment.Namespace)
	switch {
	case s.catalog == nil:
		return verdict{v1alpha1.ReasonCatalogNotFound, fmt.Sprintf("There is no AppCatalog %s/%s", namespace, ref.Name)}
	case s.catalog.Status.Revision == 0:
		return verdict{v1alpha1.ReasonCatalogNotReady,
			fmt.Sprintf("AppCatalog %s/%s offers nothing yet; its conditions say why", namespace, ref.Name)}
	}
	return verdict{}
}

// targetTrouble says why the target cannot be built.
func (c *environments) targetTrouble(s *situation) verdict {
	target := s.environment.Spec.TargetNamespace
	if c.config.Namespace != "" && target == c.config.Namespace {
		return verdict{v1alpha1.ReasonTargetTaken, fmt.Sprintf("%s is the namespace of this server", target)}
	}
	// The index is there since before the informer was started.
	sources, _ := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ByIndex(bySource, target)
	if len(sources) > 0 {
		of := as[*v1alpha1.AppCatalog](sources)[0]
		return verdict{v1alpha1.ReasonTargetIsSource, fmt.Sprintf("%s is the source of AppCatalog %s/%s", target, of.Namespace, of.Name)}
	}
	for _, other := range c.indexed(byTarget, target) {
		if !areFamily(s.environment, other) && isOlder(other, s.environment) {
			return verdict{v1alpha1.ReasonTargetTaken, fmt.Sprintf("%s is the target of Environment %s/%s", target, other.Namespace, other.Name)}
		}
	}
	if !c.hasTarget(s.environment) && !s.environment.Spec.CreateNamespace {
		return verdict{v1alpha1.ReasonTargetNotFound,
			fmt.Sprintf("There is no namespace %s, and spec.createNamespace is false", target)}
	}
	return verdict{}
}

// hasTarget says whether there is the target.
func (c *environments) hasTarget(e *v1alpha1.Environment) bool {
	_, there := c.namespaces.Get(e.Spec.TargetNamespace)
	return there
}

// areFamily says whether two environments share a target because one is the base of the other, or of both.
func areFamily(a, b *v1alpha1.Environment) bool {
	return a.Namespace == b.Namespace && baseOf(a) == baseOf(b)
}

// baseOf is the name of the environment that an environment lives in, which is its own unless it is a Branch of another.
func baseOf(e *v1alpha1.Environment) string {
	if base := e.Spec.BaseEnvironmentRef; base != nil {
		return base.Name
	}
	return e.Name
}

// isOlder says whether an environment was there before another. That one keeps the target, also while it is being deleted.
func isOlder(a, b *v1alpha1.Environment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

// baseTrouble says why a Branch cannot live in its base.
func (c *environments) baseTrouble(s *situation) verdict {
	spec := &s.environment.Spec
	if spec.BaseEnvironmentRef == nil {
		return verdict{}
	}
	name := spec.BaseEnvironmentRef.Name
	base, err := c.informers.Configbutler().V1alpha1().Environments().Lister().Environments(s.environment.Namespace).Get(name)
	switch {
	case err != nil: // A cache has no other error.
		return verdict{v1alpha1.ReasonBaseNotFound, fmt.Sprintf("There is no Environment %s", name)}
	case base.Spec.TargetNamespace != spec.TargetNamespace || catalogOf(base) != catalogOf(s.environment):
		return verdict{v1alpha1.ReasonBaseNotFound, fmt.Sprintf("Environment %s has another catalog or target", name)}
	}
	return verdict{}
}
