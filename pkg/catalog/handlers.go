// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// addHandlers adds the event handlers that enqueue source namespaces and trigger the computation of watches.
func (r *reconciler) addHandlers() error {
	if err := r.lister.addIndexers(); err != nil {
		return err
	}
	api := r.shared.Informers.Configbutler().V1alpha1()
	for _, handler := range []struct {
		informer cache.SharedIndexInformer
		funcs    cache.ResourceEventHandlerFuncs
	}{
		{api.AppCatalogs().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc: r.catalogChanged, UpdateFunc: updates(r.catalogChanged, r.catalogDeleted), DeleteFunc: r.catalogDeleted,
		}},
		{api.SyncStatuses().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc: r.recordChanged, UpdateFunc: updates(r.recordChanged, r.recordDeleted), DeleteFunc: r.recordDeleted,
		}},
		// The target of an environment is immutable.
		{api.Environments().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: r.targetChanged, DeleteFunc: r.targetChanged}},
	} {
		if _, err := handler.informer.AddEventHandler(handler.funcs); err != nil {
			return fmt.Errorf("add an event handler to an informer: %w", err)
		}
	}
	// If the batch window becomes shorter, batches may be due.
	if err := syncpolicy.Follow(api.SyncPolicies(), r.enqueueAll); err != nil {
		return err
	}
	r.shared.Cleanup(r.shared.Types.Subscribe(func(*watch.Snapshot) { r.watches.trigger() }))
	r.shared.Namespaces.Subscribe(func(change watch.NamespaceChange) {
		if change.Before == nil {
			r.queue.Add(change.After.Name)
		} else {
			r.queue.Add(change.Before.Name)
		}
	})
	return nil
}

// updates returns an update handler. An update between objects with different UIDs means that the deletion of the first was missed, so
// deleted is called for it.
func updates(changed, deleted func(any)) func(before, after any) {
	return func(before, after any) {
		one, _ := before.(metav1.Object)
		other, _ := after.(metav1.Object)
		if one != nil && other != nil && one.GetUID() != other.GetUID() {
			deleted(before)
		}
		changed(after)
	}
}

// enqueueAll enqueues all source namespaces.
func (r *reconciler) enqueueAll() {
	for _, namespace := range r.lister.namespaces() {
		r.queue.Add(namespace)
	}
}

func (r *reconciler) catalogChanged(object any) {
	catalog, ok := object.(*v1alpha1.AppCatalog)
	if !ok {
		return
	}
	if err := r.filter.set(catalog); err != nil {
		// Validation rejects such a spec: another version of the server has accepted it.
		klog.Background().Error(err, "Failed to read the spec of AppCatalog", "catalog", klog.KObj(catalog))
	}
	r.queue.Add(catalog.Spec.SourceNamespace)
	r.watches.trigger()
}

func (r *reconciler) catalogDeleted(object any) {
	catalog, ok := withoutTombstone(object).(*v1alpha1.AppCatalog)
	if !ok {
		return
	}
	r.filter.forget(catalog)
	r.events.conditions.Forget(catalog)
	r.written.forget(catalog.UID)
	r.garbage.add(catalog)
	r.updater.blocked.delete(catalog.UID)
	r.permissionLost.delete(catalog.UID)
	r.queue.Add(catalog.Spec.SourceNamespace)
	r.watches.trigger()
}

func (r *reconciler) recordChanged(object any) {
	record, ok := object.(*v1alpha1.SyncStatus)
	if !ok || record.Spec.Type != v1alpha1.SyncTypeCatalog {
		return
	}
	if catalog := r.lister.subject(record); catalog != nil {
		r.queue.Add(catalog.Spec.SourceNamespace)
	}
}

func (r *reconciler) recordDeleted(object any) {
	if record, ok := withoutTombstone(object).(*v1alpha1.SyncStatus); ok {
		r.written.delete(record)
	}
}

// targetChanged enqueues the target namespace of an environment if catalogs have it as their source.
func (r *reconciler) targetChanged(object any) {
	environment, ok := withoutTombstone(object).(*v1alpha1.Environment)
	if !ok || len(r.lister.catalogs(environment.Spec.TargetNamespace)) == 0 {
		return
	}
	r.queue.Add(environment.Spec.TargetNamespace)
	r.watches.trigger()
}

// withoutTombstone returns the last known state of an object whose deletion the informer has missed, and other objects unchanged.
func withoutTombstone(object any) any {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}
