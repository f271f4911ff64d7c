// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// bySource is the index of catalogs by the namespace that they follow.
const bySource = "catalog/source"

// listen follows the objects of users, and what there is in the source cluster.
func (c *catalogs) listen() error {
	api := c.informers.Configbutler().V1alpha1()
	informer := api.AppCatalogs().Informer()
	if err := informer.AddIndexers(cache.Indexers{bySource: sourceOf}); err != nil {
		return fmt.Errorf("follow the AppCatalogs: %w", err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.catalogChanged, UpdateFunc: updates(c.catalogChanged, c.catalogGone), DeleteFunc: c.catalogGone,
	})
	if err != nil {
		return fmt.Errorf("follow the AppCatalogs: %w", err)
	}
	if err := c.followRecords(); err != nil {
		return err
	}
	// A shorter window may be over already.
	if err := syncpolicy.Follow(c.informers.Configbutler().V1alpha1().SyncPolicies(), c.lookAtAll); err != nil {
		return err
	}
	if err := c.followEnvironments(); err != nil {
		return err
	}
	c.shared.Cleanup(c.shared.Types.Subscribe(func(*watch.Snapshot) { c.plan() }))
	c.shared.Namespaces.Subscribe(func(change watch.NamespaceChange) {
		if change.Before == nil {
			c.queue.Add(change.After.Name)
		} else {
			c.queue.Add(change.Before.Name)
		}
	})
	return nil
}

// updates is for updates of objects. If the deletion of one was not seen, what has its name by now is another one: then the first is
// gone.
func updates(changed, gone func(any)) func(before, after any) {
	return func(before, after any) {
		one, _ := before.(metav1.Object)
		other, _ := after.(metav1.Object)
		if one != nil && other != nil && one.GetUID() != other.GetUID() {
			gone(before)
		}
		changed(after)
	}
}

// lookAtAll has every source looked at.
func (c *catalogs) lookAtAll() {
	for _, namespace := range c.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ListIndexFuncValues(bySource) {
		c.queue.Add(namespace)
	}
}

func sourceOf(object any) ([]string, error) {
	if catalog, ok := object.(*v1alpha1.AppCatalog); ok {
		return []string{catalog.Spec.SourceNamespace}, nil
	}
	return nil, nil
}

func (c *catalogs) catalogChanged(object any) {
	catalog, ok := object.(*v1alpha1.AppCatalog)
	if !ok {
		return
	}
	if err := c.interests.set(catalog); err != nil {
		// Validation refuses what cannot be read: it was written by another version of this server.
		klog.Background().Error(err, "AppCatalog cannot be followed", "catalog", klog.KObj(catalog))
	}
	c.queue.Add(catalog.Spec.SourceNamespace)
	c.plan()
}

func (c *catalogs) catalogGone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if catalog, ok := object.(*v1alpha1.AppCatalog); ok {
		c.interests.forget(catalog)
		c.events.conditions.Forget(catalog)
		c.unseen.forget(catalog.UID)
		c.deleted.add(catalog)
		c.keeper.obstacles.set(catalog.UID, verdict{})
		c.lost.set(catalog.UID, verdict{})
		c.queue.Add(catalog.Spec.SourceNamespace)
		c.plan()
	}
}

// plan asks for another look at what is to be watched.
func (c *catalogs) plan() {
	select {
	case c.replan <- struct{}{}:
	default:
	}
}

// following are the catalogs of a namespace, in order.
func (c *catalogs) following(namespace string) []*v1alpha1.AppCatalog {
	// The index is there since before the informer was started.
	objects, _ := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ByIndex(bySource, namespace)
	var out []*v1alpha1.AppCatalog
	for _, object := range objects {
		if catalog, ok := object.(*v1alpha1.AppCatalog); ok && catalog.DeletionTimestamp == nil {
			out = append(out, catalog)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.AppCatalog) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	return out
}

// watchUntil watches what catalogs follow until ctx ends.
func (c *catalogs) watchUntil(ctx context.Context) {
	for {
		watches := c.watches()
		c.watched.Set(watches)
		c.reach.retain(watches)
		c.keeper.naming.follow(c.sources())
		if c.streams.Set(ctx, watches) != nil {
			return // ctx has ended.
		}
		select {
		case <-c.replan:
		case <-ctx.Done():
			return
		}
	}
}

// sources are the namespaces that catalogs follow.
func (c *catalogs) sources() []string {
	namespaces := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ListIndexFuncValues(bySource)
	return slices.DeleteFunc(namespaces, func(namespace string) bool {
		return len(c.following(namespace)) == 0 || c.reach.refuses(namespace)
	})
}

// watches are those of each type of workloads in each namespace that a catalog follows.
func (c *catalogs) watches() []watch.Watch {
	types, _ := capture.Types(c.shared.Types.Snapshot())
	var out []watch.Watch
	for _, namespace := range c.sources() {
		for _, resource := range types {
			out = append(out, watch.Watch{Resource: resource, Namespace: namespace})
		}
	}
	return out
}
