// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// router turns watch events into outbox rows of the destinations that select the object. It is safe for concurrent use.
type router struct {
	outbox     *outbox.Outbox
	authors    *authors
	namespaces namespaceLookup
	// limit is the limit of each destination's backlog; refused is called for a change that is refused because of it.
	limit   backlogLimit
	refused func(d *destination, begins bool)
	// event records an Event of a destination.
	event    func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	marks    marking
	bypasses *bypasses
	// routes has the destinations by type. The controller replaces it.
	routes atomic.Pointer[map[schema.GroupVersionResource][]*destination]
}

// rendered is an object with its path and its rendered content.
type rendered struct {
	object   outbox.Object
	kind     string
	uid      types.UID
	path     string
	content  []byte
	hash     gitrepo.Hash
	revision string
	// encryption is the fingerprint of the encryption of content; empty if it is not encrypted.
	encryption string
}

func (r rendered) resource() schema.GroupVersionResource { return r.object.GroupVersionResource() }

// render renders an object and computes its path. The path does not depend on the content, so deleted objects need none.
func render(t schema.GroupVersionResource, object *unstructured.Unstructured, withContent bool) (rendered, error) {
	r := rendered{revision: object.GetResourceVersion(), kind: object.GetKind(), uid: object.GetUID(), object: outbox.Object{
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

// arrival is a watch event on its way to the outbox.
type arrival struct {
	resource schema.GroupVersionResource
	change   watch.Change
	object   rendered
	// seen is when the event was received.
	seen time.Time
	// span is the span of the change, and waiting the part of it that waits for the author.
	span, waiting trace.Span
	// forms has, by plan, what destinations write instead of object.
	forms map[*destinationPlan]rendered
}

// changed processes one event: it is enqueued once its author is known. It blocks while the outbox is full.
//
// Most events change nothing in Git, such as status updates and heartbeats. They are dropped at once, unless an earlier
// event of the same object waits for its author, because that may make a difference to them.
func (r *router) changed(ctx context.Context, w watch.Watch, change watch.Change) {
	event := attribution.Event{Operation: v1alpha1.Operation(change.Operation), Resource: w.Resource, Object: change.Object}
	r.authors.joiner.Observe(event)
	if len(r.takers(w.Resource)) == 0 {
		eventsIgnored.WithLabelValues(notSelected).Inc()
		return
	}
	object, err := render(w.Resource, change.Object, change.Operation != watch.Delete)
	if err != nil {
		r.notRendered(ctx, w.Resource, change, err)
		return
	}
	a := &arrival{resource: w.Resource, change: change, object: object, seen: time.Now()}
	if !r.authors.waiting(object.object) && !r.wanted(ctx, a) {
		eventsIgnored.WithLabelValues(unchanged).Inc()
		return
	}
	eventsMapped.Inc()
	event.Content = r.authors.content(object.content)
	// An error means that the watch is stopping. The watch that replaces it compares everything.
	_ = r.authors.joiner.Submit(a.startSpan(ctx), event, func(ctx context.Context, author attribution.Author) { r.deliver(ctx, a, author) })
}

// notRendered reports an object that cannot be written as a file with the destinations that select it.
func (r *router) notRendered(ctx context.Context, t schema.GroupVersionResource, change watch.Change, err error) {
	eventsIgnored.WithLabelValues(unrenderable).Inc()
	klog.FromContext(ctx).Error(err, "Failed to render object")
	for _, d := range r.takers(t) {
		p := d.plan.Load()
		if change.Operation != watch.Delete && p != nil && p.problem.IsZero() && p.operations(t, change.Object, r.namespaces) != 0 {
			r.event(p.object, corev1.EventTypeWarning, reasonNotRendered, notRenderedMessage(1, err))
		}
	}
}

// takers returns the destinations that mirror a type.
func (r *router) takers(t schema.GroupVersionResource) []*destination {
	if routes := r.routes.Load(); routes != nil {
		return (*routes)[t]
	}
	return nil
}

// wanted reports whether an event changes a file of any destination.
func (r *router) wanted(ctx context.Context, a *arrival) bool {
	return slices.ContainsFunc(r.takers(a.resource), func(d *destination) bool {
		_, ok := r.next(ctx, d, a)
		return ok
	})
}

// deliver enqueues the change of an event for each destination. The changes are computed again, because the destinations
// may have changed since the event was received.
func (r *router) deliver(ctx context.Context, a *arrival, author attribution.Author) {
	defer a.span.End()
	a.endWaiting(author)
	marks, reported := r.marks.of(a.object.object, a.change.Object), false
	if a.change.Operation == watch.Delete {
		marks.Manager, marks.Reason = "", "" // Those of an earlier change.
	}
	for _, d := range r.takers(a.resource) {
		next, ok := r.next(ctx, d, a)
		if !ok {
			continue
		}
		next.Author, next.Marks, next.Trace = author, marks, traceOf(ctx)
		if r.enqueue(ctx, d, next) != nil {
			return // The watch is stopping. The watch that replaces it compares everything.
		}
		if !reported && isBypass(next) {
			reported = true
			r.bypasses.report(a.change, next)
		}
	}
}

// enqueue adds a change to the outbox, unless it is compared instead.
func (r *router) enqueue(ctx context.Context, d *destination, change outbox.Change) error {
	if r.refuse(ctx, d, change) {
		return nil
	}
	var pending outbox.Pending
	err := r.outbox.Enqueue(ctx, change, func(sequence uint64) {
		pending = pendingOf(change, sequence)
		d.queue.Enqueued(change.Path, pending)
	})
	if err != nil {
		d.queue.Withdrawn(change.Path, pending.Sequence)
	}
	return err
}

// pendingOf returns the state of a change's path after the change.
func pendingOf(change outbox.Change, sequence uint64) outbox.Pending {
	pending := outbox.Pending{Sequence: sequence, ResourceVersion: change.ResourceVersion, Author: change.Author}
	if change.Operation != v1alpha1.OperationDelete {
		pending.Hash = gitrepo.BlobHash(change.Content)
	}
	return pending
}

// next returns the change of an event for one destination, and whether it changes a file.
func (r *router) next(ctx context.Context, d *destination, a *arrival) (outbox.Change, bool) {
	p, object := d.plan.Load(), a.object
	if p == nil || !p.problem.IsZero() {
		return outbox.Change{}, false
	}
	if a.change.Operation == watch.Delete {
		d.withheld.release(p.file(object.path))
	}
	ops := p.operations(a.resource, a.change.Object, r.namespaces)
	writes := ops != 0 && a.change.Operation != watch.Delete
	if writes {
		d.record.release(object.object, object.path)
		var err error
		if object, err = a.writtenBy(p); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to render object", "destination", d.key)
			r.event(p.object, corev1.EventTypeWarning, reasonNotRendered, notRenderedMessage(1, err))
			return outbox.Change{}, false
		}
	} else {
		object.hash = gitrepo.Hash{}
	}
	hash, exists, sure := d.known(p, object)
	if ops == 0 && !sure && d.tree.Load() == nil {
		return outbox.Change{}, false // The comparison after the branch has been loaded decides.
	}
	next := outbox.Change{
		Destination: d.key, UID: d.uid, Path: object.path, Object: object.object, Kind: object.kind, ObjectUID: object.uid,
		ResourceVersion: object.revision, Time: a.seen.Truncate(time.Millisecond), Seen: a.seen,
	}
	if !writes {
		next.Operation = v1alpha1.OperationDelete
		orphan := (exists || !sure) && p.selection.removable(a.resource, object.object.Namespace, r.namespaces)
		if orphan && !p.prunes() {
			d.record.hold(object.object, object.path, sure)
		}
		return next, orphan && p.prunes()
	}
	next.Content, next.Encryption, next.Operation = object.content, object.encryption, v1alpha1.OperationUpdate
	if sure && !exists || !sure && a.change.Operation == watch.Create {
		next.Operation = v1alpha1.OperationCreate
	}
	return next, (!sure || !exists || hash != object.hash) && ops.permits(v1alpha1.Operation(a.change.Operation))
}

// writtenBy returns the object as a plan writes it. The result is cached: an event is evaluated when it is received and
// again when its author is known.
func (a *arrival) writtenBy(p *destinationPlan) (rendered, error) {
	if form, ok := a.forms[p]; ok {
		return form, nil
	}
	form, err := p.written(a.object, a.change.Object)
	if err == nil && form.hash != a.object.hash {
		if a.forms == nil {
			a.forms = map[*destinationPlan]rendered{}
		}
		a.forms[p] = form
	}
	return form, err
}

// permits reports whether the set has an operation.
func (o operations) permits(operation v1alpha1.Operation) bool {
	return o.has(operationsOf([]v1alpha1.Operation{operation}))
}
