// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	listers "github.com/configbutler/slipstream/pkg/generated/listers/configbutler/v1alpha1"
)

// everything selects all objects.
var everything = labels.Everything()

// listen adds event handlers for the pipelines, and for the SyncPolicy that can suspend them all.
func (c *pipelines) listen() error {
	api := c.informers.Configbutler().V1alpha1()
	informer := api.SyncPipelines().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: c.enqueueUpdate, DeleteFunc: c.enqueue,
	})
	if err != nil {
		return fmt.Errorf("watch SyncPipelines: %w", err)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: c.events.conditions.Forget}); err != nil {
		return fmt.Errorf("watch SyncPipelines: %w", err)
	}
	return syncpolicy.Follow(api.SyncPolicies(), c.enqueueAll)
}

// enqueue enqueues a pipeline that was created, updated or deleted.
func (c *pipelines) enqueue(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if p, ok := object.(*v1alpha1.SyncPipeline); ok {
		c.queue.Add(p.Name)
	}
}

// enqueueUpdate enqueues an updated pipeline, unless only its status has changed: most updates are the controller's own. New requests in
// the status count as a change.
func (c *pipelines) enqueueUpdate(before, after any) {
	was, known := before.(*v1alpha1.SyncPipeline)
	is, ok := after.(*v1alpha1.SyncPipeline)
	if known && ok && was.UID == is.UID && was.Generation == is.Generation && was.DeletionTimestamp.Equal(is.DeletionTimestamp) &&
		slices.EqualFunc(was.Status.PendingRequests, is.Status.PendingRequests, sameRequest) {
		return
	}
	c.enqueue(after)
}

func sameRequest(a, b v1alpha1.PendingPipelineRequest) bool { return a.ID == b.ID }

func (c *pipelines) lister() listers.SyncPipelineLister {
	return c.informers.Configbutler().V1alpha1().SyncPipelines().Lister()
}

// enqueueAll enqueues all pipelines.
func (c *pipelines) enqueueAll() {
	for _, name := range c.informers.Configbutler().V1alpha1().SyncPipelines().Informer().GetStore().ListKeys() {
		c.queue.Add(name)
	}
}
