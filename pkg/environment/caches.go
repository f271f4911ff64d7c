// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	informers "github.com/configbutler/slipstream/pkg/generated/informers/externalversions/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// caches reads the objects that informers have cached. Its indexes are added by follower before the informers are started.
type caches struct {
	informers  informers.Interface
	namespaces *watch.Namespaces
}

// environments returns all environments.
func (c *caches) environments() []*v1alpha1.Environment {
	return as[*v1alpha1.Environment](c.informers.Environments().Informer().GetStore().List())
}

// environmentsBy returns the environments that an index has for a key.
func (c *caches) environmentsBy(index, key string) []*v1alpha1.Environment {
	objects, _ := c.informers.Environments().Informer().GetIndexer().ByIndex(index, key)
	return as[*v1alpha1.Environment](objects)
}

// relatedTo returns the other environments of the namespace that have the same target.
func (c *caches) relatedTo(e *v1alpha1.Environment) []*v1alpha1.Environment {
	return slices.DeleteFunc(c.environmentsBy(byTarget, targetOf(e)), func(other *v1alpha1.Environment) bool {
		return other.UID == e.UID || other.Namespace != e.Namespace
	})
}

// baseOf returns the base environment of an environment, nil if it has none or it does not exist.
func (c *caches) baseOf(e *v1alpha1.Environment) *v1alpha1.Environment {
	ref := e.Spec.BaseEnvironmentRef
	if ref == nil {
		return nil
	}
	found, err := c.informers.Environments().Lister().Environments(e.Namespace).Get(ref.Name)
	if err != nil {
		return nil // NotFound is the only error of a cache.
	}
	return found
}

// catalogOf returns the catalog of an environment, nil if it does not exist.
func (c *caches) catalogOf(e *v1alpha1.Environment) *v1alpha1.AppCatalog {
	name := e.Spec.CatalogRef.NamespacedName(e.Namespace)
	found, err := c.informers.AppCatalogs().Lister().AppCatalogs(name.Namespace).Get(name.Name)
	if err != nil {
		return nil // NotFound is the only error of a cache.
	}
	return found
}

// catalogsOf returns the catalogs of a source namespace.
func (c *caches) catalogsOf(source string) []*v1alpha1.AppCatalog {
	objects, _ := c.informers.AppCatalogs().Informer().GetIndexer().ByIndex(bySource, source)
	return as[*v1alpha1.AppCatalog](objects)
}

// openOf returns the records of an environment that have not ended.
func (c *caches) openOf(e *v1alpha1.Environment) []*v1alpha1.SyncStatus {
	open, _ := c.recordInformer().GetIndexer().ByIndex(bySubject, string(e.UID))
	return as[*v1alpha1.SyncStatus](open)
}

// recordInformer returns the informer of SyncStatuses. Of records of environments it has only the identity, the spec and the state.
func (c *caches) recordInformer() cache.SharedIndexInformer {
	return c.informers.SyncStatuses().Informer()
}

// policy returns the SyncPolicy with its defaults.
func (c *caches) policy() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(c.informers.SyncPolicies().Lister())
}

// bySourceNamespace returns the synced environments by source namespace.
func (c *caches) bySourceNamespace() map[string][]types.NamespacedName {
	found := map[string][]types.NamespacedName{}
	for _, e := range c.environments() {
		if catalog := c.catalogOf(e); catalog != nil && e.Status.AppliedRevision > 0 {
			found[catalog.Spec.SourceNamespace] = append(found[catalog.Spec.SourceNamespace], nameOf(e))
		}
	}
	return found
}

// labelsOf returns the labels of a namespace; false if it does not exist.
func (c *caches) labelsOf(namespace string) (labels.Set, bool) {
	found, there := c.namespaces.Get(namespace)
	return found.Labels, there
}

// hasTarget reports whether the target namespace exists.
func (c *caches) hasTarget(e *v1alpha1.Environment) bool {
	_, there := c.namespaces.Get(e.Spec.TargetNamespace)
	return there
}

// as converts objects of a cache to their type.
func as[O any](objects []any) []O {
	out := make([]O, 0, len(objects))
	for _, object := range objects {
		if of, ok := object.(O); ok {
			out = append(out, of)
		}
	}
	return out
}
