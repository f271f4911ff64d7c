// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const (
	// byCatalog indexes environments by namespace and name of their catalogs.
	byCatalog = "environment/catalog"
	// byTarget indexes environments by target namespace.
	byTarget = "environment/target"
	// bySubject indexes SyncStatuses that have not ended by the UID of their environment.
	bySubject = "environment/subject"
	// bySource indexes catalogs by source namespace.
	bySource = "environment/source"
)

// listen adds event handlers that enqueue environments.
func (c *environments) listen() error {
	for kind, follow := range map[string]func() error{
		"Environments": c.followEnvironments, "AppCatalogs": c.followCatalogs,
		"SyncStatuses": c.followRecords, "SyncPolicy": c.followPolicy,
	} {
		if err := follow(); err != nil {
			return fmt.Errorf("follow the %s: %w", kind, err)
		}
	}
	c.shared.Namespaces.Subscribe(func(change watch.NamespaceChange) {
		of := cmp.Or(change.After, change.Before)
		c.enqueueIndexed(byTarget, of.Name)
		// Catalogs can select the namespaces of their environments by label.
		c.enqueueIndexed(cache.NamespaceIndex, of.Name)
	})
	return nil
}

// onChange calls changed for each object that is added, updated or deleted.
func onChange[O any](changed func(O)) cache.ResourceEventHandler {
	notify := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if of, ok := object.(O); ok {
			changed(of)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) }, DeleteFunc: notify}
}

// by returns an index function with one key for each object. Objects with an empty key are not indexed.
func by[O any](key func(O) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if of, ok := object.(O); ok {
			if found := key(of); found != "" {
				return []string{found}, nil
			}
		}
		return nil, nil
	}
}

func (c *environments) followEnvironments() error {
	informer := c.informers.Configbutler().V1alpha1().Environments().Informer()
	if err := informer.AddIndexers(cache.Indexers{byCatalog: by(catalogOf), byTarget: by(targetOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(e *v1alpha1.Environment) {
		c.queue.Add(nameOf(e))
		// Environments with the same target can exclude each other.
		c.enqueueIndexed(byTarget, e.Spec.TargetNamespace)
	}))
	if err != nil {
		return err
	}
	if _, err = informer.AddEventHandler(c.followSources()); err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: c.events.conditions.Forget})
	return err
}

func (c *environments) followCatalogs() error {
	informer := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer()
	if err := informer.AddIndexers(cache.Indexers{bySource: by(sourceOf)}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(c.followSources()); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(catalog *v1alpha1.AppCatalog) {
		c.enqueueIndexed(byCatalog, catalog.Namespace+"/"+catalog.Name)
		c.enqueueIndexed(byTarget, catalog.Spec.SourceNamespace)
	}))
	return err
}

// followRecords watches the records of environments. Records are kept for months, so the cache holds only their identities and
// states.
func (c *environments) followRecords() error {
	informer := c.recordInformer()
	if err := informer.AddIndexers(cache.Indexers{bySubject: by(subjectOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(record *v1alpha1.SyncStatus) {
		if record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
			c.queue.Add(types.NamespacedName{Namespace: record.Namespace, Name: record.Spec.Subject.Name})
		}
	}))
	return err
}

// recordInformer returns the informer of SyncStatuses. Of records of environments it has only the identity, the spec and the state.
func (c *environments) recordInformer() cache.SharedIndexInformer {
	return c.informers.Configbutler().V1alpha1().SyncStatuses().Informer()
}

// followPolicy enqueues all environments when the SyncPolicy changes.
func (c *environments) followPolicy() error {
	return syncpolicy.Follow(c.informers.Configbutler().V1alpha1().SyncPolicies(), func() {
		c.enqueueAll()
		c.detector.PolicyChanged()
	})
}

// enqueueIndexed enqueues the environments that an index has for a key.
func (c *environments) enqueueIndexed(index, key string) {
	for _, e := range c.indexed(index, key) {
		c.queue.Add(nameOf(e))
	}
}

// indexed returns the environments that an index has for a key.
func (c *environments) indexed(index, key string) []*v1alpha1.Environment {
	// The index was added before the informer was started.
	objects, _ := c.informers.Configbutler().V1alpha1().Environments().Informer().GetIndexer().ByIndex(index, key)
	return as[*v1alpha1.Environment](objects)
}

func (c *environments) enqueueAll() {
	for _, e := range as[*v1alpha1.Environment](c.informers.Configbutler().V1alpha1().Environments().Informer().GetStore().List()) {
		c.queue.Add(nameOf(e))
	}
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

func nameOf(e *v1alpha1.Environment) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

func catalogOf(e *v1alpha1.Environment) string {
	return cmp.Or(e.Spec.CatalogRef.Namespace, e.Namespace) + "/" + e.Spec.CatalogRef.Name
}

func targetOf(e *v1alpha1.Environment) string { return e.Spec.TargetNamespace }

func sourceOf(catalog *v1alpha1.AppCatalog) string { return catalog.Spec.SourceNamespace }

// subjectOf returns the UID of the environment of a record that has not ended.
func subjectOf(record *v1alpha1.SyncStatus) string {
	if record.Spec.Subject.Kind != v1alpha1.SubjectEnvironment || syncstatus.Ended(record) {
		return ""
	}
	return string(record.Spec.Subject.UID)
}
