// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// byTarget is the index of environments by the namespace that they build.
const byTarget = "catalog/target"

// followEnvironments has a namespace looked at when an environment begins or ends to build it.
func (c *catalogs) followEnvironments() error {
	informer := c.informers.Configbutler().V1alpha1().Environments().Informer()
	if err := informer.AddIndexers(cache.Indexers{byTarget: targetOf}); err != nil {
		return fmt.Errorf("follow the Environments: %w", err)
	}
	// A target cannot be changed.
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.targetChanged, DeleteFunc: c.targetChanged})
	if err != nil {
		return fmt.Errorf("follow the Environments: %w", err)
	}
	return nil
}

func targetOf(object any) ([]string, error) {
	if environment, ok := object.(*v1alpha1.Environment); ok {
		return []string{environment.Spec.TargetNamespace}, nil
	}
	return nil, nil
}

func (c *catalogs) targetChanged(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	environment, ok := object.(*v1alpha1.Environment)
	if !ok || len(c.following(environment.Spec.TargetNamespace)) == 0 {
		return
	}
	c.queue.Add(environment.Spec.TargetNamespace)
	c.plan()
}

// builder is the environment that builds a namespace which catalogs want to follow, if it was there before them.
func (c *catalogs) builder(namespace string) *v1alpha1.Environment {
	api := c.informers.Configbutler().V1alpha1()
	// The indices are there since before the informers were started.
	environments, _ := api.Environments().Informer().GetIndexer().ByIndex(byTarget, namespace)
	if len(environments) == 0 {
		return nil
	}
	following, _ := api.AppCatalogs().Informer().GetIndexer().ByIndex(bySource, namespace)
	around := placement.Cluster{Environments: objectsOf[*v1alpha1.Environment](environments), Catalogs: objectsOf[*v1alpha1.AppCatalog](following)}
	return around.Builder(namespace)
}

// objectsOf are the objects of a cache, which holds no others.
func objectsOf[O any](objects []any) []O {
	out := make([]O, 0, len(objects))
	for _, object := range objects {
		if o, ok := object.(O); ok {
			out = append(out, o)
		}
	}
	return out
}
