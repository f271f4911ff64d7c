// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
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

// follower enqueues the environments that a change of an object concerns.
type follower struct {
	caches *caches
	// queue has the environments to reconcile.
	queue    *controller.Queue[types.NamespacedName]
	detector Detector
	// forget is called with deleted environments.
	forget func(deleted any)
}

// listen adds event handlers that enqueue environments.
func (f *follower) listen() error {
	for kind, follow := range map[string]func() error{
		"Environments": f.followEnvironments, "AppCatalogs": f.followCatalogs,
		"SyncStatuses": f.followRecords, "SyncPolicy": f.followPolicy,
	} {
		if err := follow(); err != nil {
			return fmt.Errorf("follow the %s: %w", kind, err)
		}
	}
	f.caches.namespaces.Subscribe(func(change watch.NamespaceChange) {
		of := cmp.Or(change.After, change.Before)
		f.enqueueIndexed(byTarget, of.Name)
		// Catalogs can select the namespaces of their environments by label.
		f.enqueueIndexed(cache.NamespaceIndex, of.Name)
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

func (f *follower) followEnvironments() error {
	informer := f.caches.informers.Environments().Informer()
	if err := informer.AddIndexers(cache.Indexers{byCatalog: by(catalogOf), byTarget: by(targetOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(e *v1alpha1.Environment) {
		f.queue.Add(nameOf(e))
		// Environments with the same target can exclude each other.
		f.enqueueIndexed(byTarget, e.Spec.TargetNamespace)
	}))
	if err != nil {
		return err
	}
	if _, err = informer.AddEventHandler(f.followSources()); err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: f.forget})
	return err
}

func (f *follower) followCatalogs() error {
	informer := f.caches.informers.AppCatalogs().Informer()
	if err := informer.AddIndexers(cache.Indexers{bySource: by(sourceOf)}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(f.followSources()); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(catalog *v1alpha1.AppCatalog) {
		f.enqueueIndexed(byCatalog, catalog.Namespace+"/"+catalog.Name)
		f.enqueueIndexed(byTarget, catalog.Spec.SourceNamespace)
	}))
	return err
}

// followRecords watches the records of environments. Records are kept for months, so the cache holds only their identities and
// states.
func (f *follower) followRecords() error {
	informer := f.caches.recordInformer()
	if err := informer.AddIndexers(cache.Indexers{bySubject: by(subjectOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(onChange(func(record *v1alpha1.SyncStatus) {
		if record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
			f.queue.Add(types.NamespacedName{Namespace: record.Namespace, Name: record.Spec.Subject.Name})
		}
	}))
	return err
}

// followPolicy enqueues all environments when the SyncPolicy changes.
func (f *follower) followPolicy() error {
	return syncpolicy.Follow(f.caches.informers.SyncPolicies(), func() {
		f.enqueueAll()
		f.detector.PolicyChanged()
	})
}

// enqueueIndexed enqueues the environments that an index has for a key.
func (f *follower) enqueueIndexed(index, key string) {
	for _, e := range f.caches.environmentsBy(index, key) {
		f.queue.Add(nameOf(e))
	}
}

func (f *follower) enqueueAll() {
	for _, e := range f.caches.environments() {
		f.queue.Add(nameOf(e))
	}
}

func nameOf(e *v1alpha1.Environment) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

func catalogOf(e *v1alpha1.Environment) string {
	return e.Spec.CatalogRef.NamespacedName(e.Namespace).String()
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
