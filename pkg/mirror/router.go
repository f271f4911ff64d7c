// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/gitrepo"
	"github.com/configbutler/slipstream/pkg/manifest"
	"github.com/configbutler/slipstream/pkg/source"
)

// router takes changes from the watches to the outbox rows of the destinations that want
// them. It may be called for several watches at once.
type router struct {
	outbox     *Outbox
	namespaces namespaceLookup
	// routes are the destinations by type. The controller replaces them.
	routes atomic.Pointer[map[schema.GroupVersionResource][]*destination]
}

// rendered is an object in the form in which destinations get it.
type rendered struct {
	object   Object
	path     string
	content  []byte
	hash     gitrepo.Hash
	revision string
	// sealing tells how content is encrypted; empty: it is not.
	sealing string
}

func (r rendered) resource() schema.GroupVersionResource { return r.object.resource() }

// render gives an object its canonical form and its path. A path does not depend on the
// content, so objects that are gone need no content.
func render(t schema.GroupVersionResource, object *unstructured.Unstructured, withContent bool) (rendered, error) {
	r := rendered{revision: object.GetResourceVersion(), object: Object{
		Group: t.Group, Version: t.Version, Resource: t.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
	}}
	var err error
	if r.path, err = manifest.LocationOf(t, object).Path(); err != nil {
		return r, fmt.Errorf("path of %s: %w", r.object, err)
	}
	if !withContent {
		return r, nil
	}
	if r.content, err = manifest.Render(object); err != nil {
		return r, fmt.Errorf("render %s: %w", r.object, err)
	}
	r.hash = gitrepo.BlobHash(r.content)
	return r, nil
}

// changed sends one change on. It blocks while the outbox cannot take more.
func (r *router) changed(ctx context.Context, w source.Watch, change source.Change) {
	routes := r.routes.Load()
	if routes == nil || len((*routes)[w.Resource]) == 0 {
		return
	}
	object, err := render(w.Resource, change.Object, change.Operation != source.Delete)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Object cannot be mirrored")
		return
	}
	for _, d := range (*routes)[w.Resource] {
		next, ok := r.next(ctx, d, w.Resource, change, object)
		if ok && r.enqueue(ctx, d, next) != nil {
			return // the watch is stopping; what takes its place compares everything
		}
	}
}

func (r *router) enqueue(ctx context.Context, d *destination, change Change) error {
	var pending pendingChange
	err := r.outbox.Enqueue(ctx, change, func(sequence uint64) {
		pending = pendingOf(change, sequence)
		d.queue.enqueued(change.Path, pending)
	})
	if err != nil {
		d.queue.withdrawn(change.Path, pending.sequence)
	}
	return err
}

// pendingOf is what a change will make of its path.
func pendingOf(change Change, sequence uint64) pendingChange {
	pending := pendingChange{sequence: sequence, resourceVersion: change.ResourceVersion}
	if change.Operation != v1alpha1.OperationDelete {
		pending.hash = gitrepo.BlobHash(change.Content)
	}
	return pending
}

// next is what a change means to one destination, if it means anything new.
func (r *router) next(ctx context.Context, d *destination, t schema.GroupVersionResource, change source.Change, object rendered) (Change, bool) {
	p := d.plan.Load()
	if p == nil || !p.verdict.ok() {
		return Change{}, false
	}
	ops := p.operations(t, change.Object, r.namespaces)
	hash, exists, sure := d.known(p, object)
	if ops == 0 && !sure && d.tree.Load() == nil {
		return Change{}, false // the comparison that follows the reading of the branch decides
	}
	next := Change{
		Destination: d.key, UID: d.uid, Path: object.path, Object: object.object,
		ResourceVersion: object.revision, Time: time.Now().Truncate(time.Second),
	}
	if ops == 0 || change.Operation == source.Delete {
		next.Operation = v1alpha1.OperationDelete
		orphan := (exists || !sure) && p.selection.removable(t, object.object.Namespace, r.namespaces)
		if orphan && !p.prunes() {
			d.record.hold(object.path)
		}
		return next, orphan && p.prunes()
	}
	d.record.release(object.path)
	object, err := p.written(object, change.Object)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Object cannot be mirrored", "destination", d.key)
		return Change{}, false
	}
	next.Content, next.Sealing, next.Operation = object.content, object.sealing, v1alpha1.OperationUpdate
	if sure && !exists || !sure && change.Operation == source.Create {
		next.Operation = v1alpha1.OperationCreate
	}
	return next, (!sure || !exists || hash != object.hash) && ops.permits(v1alpha1.Operation(change.Operation))
}

// permits says whether the set holds an operation.
func (o operations) permits(operation v1alpha1.Operation) bool {
	return o.has(operationsOf([]v1alpha1.Operation{operation}))
}
