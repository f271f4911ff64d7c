// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// A comparison is pushed in parts of comparePartBytes or comparePartFiles, which bounds its memory; in smaller parts if
	// other writers push to the branch.
	comparePartBytes = 8 << 20
	comparePartFiles = 10_000
)

// listError is an error of the source cluster. It concerns one type, not the branch.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// compareNext runs the due comparisons of one destination, or, if none is due, sweeps. It reports whether there may be more.
// Errors of the cluster are recorded with the type and retried later; errors of the branch are returned.
func (w *worker) compareNext(ctx context.Context, members []member) (more bool, err error) {
	for _, m := range members {
		if more, err := (&round{worker: w, members: members, member: m}).run(ctx); more || err != nil {
			return more, err
		}
	}
	for _, m := range members {
		if err := w.sweep(ctx, members, m); err != nil {
			m.destination.seeds.sweepAgain()
			return false, err
		}
	}
	return false, nil
}

// round is a sequence of comparisons of one destination that share commits, because users change objects of several types
// at once.
//
// It runs in the worker, so no row is staged meanwhile: rows that are already staged are older than its lists, and later
// rows are distinguished by the resourceVersion of the lists. A round compares a type once, because the changes of the first
// comparison may not be on the branch yet.
type round struct {
	worker  *worker
	members []member
	member  member
	// all are the comparisons that have started and not failed; current is the running one, or nil. Those before it are
	// complete and succeed with the next push.
	all     []*comparison
	current *comparison
	// files and bytes are the size of the changes that have not been pushed yet.
	files, bytes int
	// done are the types that this round has compared.
	done map[schema.GroupVersionResource]bool
}

// run runs the comparisons. It reports whether there was one.
func (r *round) run(ctx context.Context) (more bool, err error) {
	r.done = map[schema.GroupVersionResource]bool{}
	defer func() {
		for _, c := range r.all {
			r.member.destination.seeds.putBack(c.seed)
		}
	}()
	for ctx.Err() == nil && (!more || !r.worker.wanted(r.members)) {
		next, ok := r.next()
		if !ok {
			break
		}
		if r.member.destination.plan.Load() != r.member.plan {
			// The new plan may have requested it. The controller wakes the worker for the next cycle, which uses that plan.
			r.member.destination.seeds.putBack(next)
			return false, r.flush(ctx)
		}
		more = true
		if err := r.compare(ctx, next); err != nil {
			return false, err
		}
	}
	return more, r.flush(ctx)
}

// next returns the next due comparison.
func (r *round) next() (seed, bool) {
	services := r.worker.services
	return r.member.destination.seeds.take(func(t schema.GroupVersionResource) bool {
		return !r.done[t] && services.running(r.member.plan, t)
	}, func(t schema.GroupVersionResource) bool { return services.starting(r.member.plan, t) })
}

// wanted reports whether other work comes before the next comparison: rows, whose authors a comparison would lose, or other
// branches.
func (w *worker) wanted(members []member) bool {
	return backlogOf(members).Rows > 0 && !w.batching.holds(members) || w.slot.contended()
}

// compare runs one comparison, up to the push.
func (r *round) compare(ctx context.Context, next seed) error {
	r.done[next.resource] = true
	c := &comparison{round: r, seed: next, began: time.Now()}
	r.all, r.current = append(r.all, c), c
	err := c.run(ctx)
	r.current = nil
	var list listError
	if errors.As(err, &list) {
		klog.FromContext(ctx).Info("Failed to compare type", "destination", r.member.destination.key, "type", next.resource, "reason", err.Error())
		r.drop(c)
		r.member.destination.seeds.failed(next, err)
		r.worker.services.changed()
		return nil
	}
	return err
}

// drop discards the changes of the last comparison that have not been pushed yet.
func (r *round) drop(c *comparison) {
	r.all = r.all[:len(r.all)-1]
	r.files -= len(c.changes)
	for _, change := range c.changes {
		r.bytes -= len(change.Content)
	}
}

// add adds a change that a comparison has found, and flushes when a part is full.
func (r *round) add(ctx context.Context, c *comparison, change outbox.Change) error {
	c.changes = append(c.changes, change)
	r.files++
	r.bytes += len(change.Content)
	if r.bytes < comparePartBytes && r.files < r.worker.race.bound(comparePartFiles) {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return branchError{err}
	}
	return nil
}

// flush pushes the pending changes. The complete comparisons have then succeeded.
func (r *round) flush(ctx context.Context) error {
	var changes []outbox.Change
	listed := map[watch.Watch]string{}
	for _, c := range r.all {
		changes = append(changes, c.changes...)
		if c != r.current {
			maps.Copy(listed, c.listed)
		}
	}
	pushed, err := r.worker.pushSeed(ctx, r.members, r.member, changes, listed)
	if err != nil {
		return err
	}
	r.worker.announceSeed(r.member, pushed, "that no object maps to")
	r.files, r.bytes = 0, 0
	for _, c := range r.all {
		c.changes = nil
		of := pushed.found[c.seed.resource]
		c.found.written += of.written
		c.found.removed += of.removed
		if c != r.current {
			c.succeeded(ctx)
		}
	}
	r.all = slices.DeleteFunc(r.all, func(c *comparison) bool { return c != r.current })
	return nil
}

// comparison compares the files of one type of one destination with the cluster.
type comparison struct {
	*round

	seed  seed
	began time.Time
	live  map[string]struct{}
	// listed is the resourceVersion at which each scope was listed.
	listed map[watch.Watch]string
	// changes have not been pushed yet.
	changes []outbox.Change
	// held are the orphans that are kept.
	held  []managedFile
	found found
}

// run finds the changes.
func (c *comparison) run(ctx context.Context) error {
	c.live, c.listed = map[string]struct{}{}, map[watch.Watch]string{}
	for _, scope := range c.scopes() {
		resourceVersion, err := c.worker.services.lister.List(ctx, scope, func(object *unstructured.Unstructured) error {
			return c.visit(ctx, object)
		})
		if err != nil {
			return classify(fmt.Errorf("list %s: %w", scope, err))
		}
		c.listed[scope] = resourceVersion
	}
	if err := c.orphans(ctx); err != nil {
		return classify(err)
	}
	return nil
}

// succeeded records a comparison whose changes are on the branch.
func (c *comparison) succeeded(ctx context.Context) {
	c.found.held = len(c.held)
	c.member.destination.seeds.succeeded(c.seed, c.listed, c.found)
	c.member.destination.record.holdOnly(c.looksAt, c.held)
	c.member.destination.record.compared()
	c.worker.services.changed()
	klog.FromContext(ctx).Info("Compared with the cluster", "destination", c.member.destination.key, "type", c.seed.resource.GroupResource().String(),
		"objects", len(c.live), "written", c.found.written, "removed", c.found.removed, "orphansHeld", c.found.held,
		"took", time.Since(c.began).Round(time.Millisecond).String())
}

// classify returns an error as a listError unless the branch caused it.
func classify(err error) error {
	var branch branchError
	if errors.As(err, &branch) {
		return branch.error
	}
	return listError{err}
}

// branchError carries an error of the branch through the lister.
type branchError struct{ error }

// scopes returns the lists that the comparison needs.
func (c *comparison) scopes() []watch.Watch {
	if len(c.seed.namespaces) == 0 {
		return c.member.plan.selection.watches(c.seed.resource)
	}
	scopes := make([]watch.Watch, len(c.seed.namespaces))
	for i, namespace := range c.seed.namespaces {
		scopes[i] = watch.Watch{Resource: c.seed.resource, Namespace: namespace}
	}
	return scopes
}

// visit compares one object with its file.
func (c *comparison) visit(ctx context.Context, object *unstructured.Unstructured) error {
	objectsScanned.Inc()
	ops := c.member.plan.operations(c.seed.resource, object, c.worker.services.namespaces)
	if ops == 0 {
		return nil
	}
	r, err := render(c.seed.resource, object, true)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to render object")
		return nil
	}
	c.live[r.path] = struct{}{}
	if r, err = c.member.plan.written(r, object); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to render object", "destination", c.member.destination.key)
		return nil
	}
	hash, exists := c.worker.remote.tree().Lookup(c.member.plan.file(r.path))
	operation := v1alpha1.OperationCreate
	if exists {
		operation = v1alpha1.OperationUpdate
	}
	if exists && hash == r.hash || !ops.permits(operation) {
		return nil
	}
	return c.add(ctx, c, outbox.Change{
		Destination: c.member.destination.key, UID: c.member.destination.uid, Path: r.path, Content: r.content, Encryption: r.encryption,
		Operation: operation, Object: r.object, ResourceVersion: object.GetResourceVersion(), Time: time.Now().Truncate(time.Second),
		Author: c.author(r, attribution.Event{Operation: operation, Resource: c.seed.resource, Object: object}),
	})
}

// author returns the author of a change that the comparison has found: that of a pending row with the same content, which
// the comparison overtakes, or else the one that the attribution facts show.
func (c *comparison) author(found rendered, event attribution.Event) attribution.Author {
	if waiting, ok := c.member.destination.queue.Pending(found.path); ok && waiting.Hash == found.hash && waiting.Author.Known() {
		return waiting.Author
	}
	return c.worker.services.author(event)
}

// looksAt reports whether the object is in the scope of the comparison.
func (c *comparison) looksAt(o outbox.Object) bool {
	return o.GroupVersionResource() == c.seed.resource && (len(c.seed.namespaces) == 0 || slices.Contains(c.seed.namespaces, o.Namespace))
}

// orphans collects the files that no listed object maps to. If the destination does not prune, they are held.
func (c *comparison) orphans(ctx context.Context) error {
	t := c.seed.resource
	folder, err := manifest.Folder{Group: t.Group, Version: t.Version, Resource: t.Resource}.Path()
	if err != nil {
		return fmt.Errorf("folder of %s: %w", t, err)
	}
	var removals []outbox.Change
	err = walkFiles(ctx, c.worker.remote.tree(), c.member.plan, folder, func(file managedFile) {
		_, live := c.live[file.path]
		switch {
		case live || !c.looksAt(file.object) || !c.member.plan.selection.removable(t, file.object.Namespace, c.worker.services.namespaces):
		case c.member.plan.prunes():
			removal := c.member.destination.removal(file)
			removal.ResourceVersion = cmp.Or(c.listed[watch.Watch{Resource: t}], c.listed[watch.Watch{Resource: t, Namespace: file.object.Namespace}])
			removal.Author = c.worker.services.author(attribution.Event{Operation: removal.Operation, Resource: t, Object: file.object.Unstructured()})
			removals = append(removals, removal)
		default:
			c.held = append(c.held, file)
		}
	})
	if err != nil {
		return err
	}
	// All removals are in one push, however many there are.
	c.changes = append(c.changes, removals...)
	c.files += len(removals)
	return nil
}

// removal returns the change that removes an orphan.
func (d *destination) removal(file managedFile) outbox.Change {
	return outbox.Change{
		Destination: d.key, UID: d.uid, Path: file.path, Operation: v1alpha1.OperationDelete,
		Object: file.object, Time: time.Now().Truncate(time.Second),
	}
}

// pushSeed pushes the changes of comparisons as one commit, or as one for each known author.
func (w *worker) pushSeed(ctx context.Context, members []member, m member, changes []outbox.Change, listed map[watch.Watch]string) (pushed, error) {
	if len(changes) == 0 {
		return pushed{}, nil
	}
	b := &batch{member: m, listed: listed}
	for _, g := range groupFound(m.plan.object.Spec.Granularity, changes) {
		if err := w.stager.stage(m, g, true, &b.pushed); err != nil {
			return pushed{}, err
		}
	}
	if err := w.pusher.push(ctx, members, []*batch{b}); err != nil {
		return pushed{}, err
	}
	m.destination.record.orphansRemoved(b.pushed.removed)
	return b.pushed, nil
}
