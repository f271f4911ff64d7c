// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	counted "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// A comparison is pushed in parts of comparePartBytes or comparePartFiles, so that it
	// holds no more than that in memory; in smaller ones where others push at the same time.
	comparePartBytes = 8 << 20
	comparePartFiles = 10_000
)

// listError marks an error of the cluster, which concerns one type, not the branch.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// compareNext makes the comparisons of one destination that are due, or, when none is, sweeps. It returns whether there
// may be more. An error of the cluster is noted with its type, to be tried again later; an error of the branch is returned.
func (w *worker) compareNext(ctx context.Context, members []member) (more bool, err error) {
	for _, m := range members {
		if more, err := (&round{worker: w, members: members, member: m}).run(ctx); more || err != nil {
			return more, err
		}
	}
	for _, m := range members {
		if err := w.sweep(ctx, members, m); err != nil {
			m.seeds.sweepAgain()
			return false, err
		}
	}
	return false, nil
}

// round is the comparisons of one destination that are made one after the other and share commits: whoever made the
// changes made them to objects of several types.
//
// It runs in the worker, so no row is staged meanwhile: rows that are already staged are older than the lists it makes,
// and rows that come later are told apart by the resourceVersion of the lists. A type is compared once in a round, since
// what the first comparison has found may not be on the branch yet.
type round struct {
	worker  *worker
	members []member
	member
	// all are the comparisons that have begun and not failed; current is the one that is being made, nil between two.
	// Those before it have found everything, and succeed with the next push.
	all     []*comparison
	current *comparison
	// files and bytes are what all have found and nothing has pushed yet.
	files, bytes int
	// done are the types that are compared no more in this round.
	done map[schema.GroupVersionResource]bool
}

// run makes the comparisons. It returns whether there was one to make.
func (r *round) run(ctx context.Context) (more bool, err error) {
	r.done = map[schema.GroupVersionResource]bool{}
	defer func() {
		for _, c := range r.all {
			r.seeds.putBack(c.seed)
		}
	}()
	for ctx.Err() == nil && (!more || !r.worker.wanted(r.members)) {
		next, ok := r.next()
		if !ok {
			break
		}
		if r.destination.plan.Load() != r.plan {
			// It may be the new plan that asks for it. The next cycle, for which the
			// controller wakes the worker, goes by that.
			r.seeds.putBack(next)
			return false, r.flush(ctx)
		}
		more = true
		if err := r.compare(ctx, next); err != nil {
			return false, err
		}
	}
	return more, r.flush(ctx)
}

// next takes the next comparison.
func (r *round) next() (seed, bool) {
	services := r.worker.services
	return r.seeds.take(func(t schema.GroupVersionResource) bool {
		return !r.done[t] && services.running(r.plan, t)
	}, func(t schema.GroupVersionResource) bool { return services.starting(r.plan, t) })
}

// wanted says whether there is something to do before more is compared: rows wait, whose authors a comparison would take
// away, or other branches.
func (w *worker) wanted(members []member) bool {
	return w.backlog(members).rows > 0 && !w.gathering(members) || w.slot.contended()
}

// compare makes one comparison, up to the push.
func (r *round) compare(ctx context.Context, next seed) error {
	r.done[next.resource] = true
	c := &comparison{round: r, seed: next, began: time.Now()}
	r.all, r.current = append(r.all, c), c
	err := c.run(ctx)
	r.current = nil
	var list listError
	if errors.As(err, &list) {
		klog.FromContext(ctx).Info("Type cannot be compared", "destination", r.key, "type", next.resource, "reason", err.Error())
		r.drop(c)
		r.seeds.failed(next, err)
		r.worker.services.changed()
		return nil
	}
	return err
}

// drop gives up what the last comparison has found and nothing has pushed yet.
func (r *round) drop(c *comparison) {
	r.all = r.all[:len(r.all)-1]
	r.files -= len(c.changes)
	for _, change := range c.changes {
		r.bytes -= len(change.Content)
	}
}

// add takes what a comparison has found, and pushes what has gathered when it is enough.
func (r *round) add(ctx context.Context, c *comparison, change Change) error {
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

// flush pushes what has gathered. The comparisons that have found everything have then succeeded.
func (r *round) flush(ctx context.Context) error {
	var changes []Change
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

// comparison brings the files of one type of one destination to what the cluster holds.
type comparison struct {
	*round

	seed  seed
	began time.Time
	live  map[string]struct{}
	// listed is the resourceVersion at which each scope was listed.
	listed map[watch.Watch]string
	// changes have not been pushed yet.
	changes []Change
	// held are the files that no object maps to and that are kept.
	held  []managedFile
	found found
}

// run finds what is to be changed.
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

// succeeded notes that the branch holds what was found.
func (c *comparison) succeeded(ctx context.Context) {
	c.found.held = len(c.held)
	c.seeds.succeeded(c.seed, c.listed, c.found)
	c.record.holdOnly(c.looksAt, c.held)
	c.record.compared()
	c.worker.services.changed()
	klog.FromContext(ctx).Info("Compared with the cluster", "destination", c.key, "type", c.seed.resource.GroupResource().String(),
		"objects", len(c.live), "written", c.found.written, "removed", c.found.removed, "orphansHeld", c.found.held,
		"took", time.Since(c.began).Round(time.Millisecond).String())
}

// classify marks an error as the cluster's unless the branch caused it.
func classify(err error) error {
	var branch branchError
	if errors.As(err, &branch) {
		return branch.error
	}
	return listError{err}
}

// branchError carries an error of the branch through the lister.
type branchError struct{ error }

// scopes are what has to be listed.
func (c *comparison) scopes() []watch.Watch {
	if len(c.seed.namespaces) == 0 {
		return c.plan.selection.watches(c.seed.resource)
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
	ops := c.plan.operations(c.seed.resource, object, c.worker.services.namespaces)
	if ops == 0 {
		return nil
	}
	r, err := render(c.seed.resource, object, true)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Object cannot be mirrored")
		return nil
	}
	c.live[r.path] = struct{}{}
	if r, err = c.plan.written(r, object); err != nil {
		klog.FromContext(ctx).Error(err, "Object cannot be mirrored", "destination", c.key)
		return nil
	}
	hash, exists := c.worker.branch.Snapshot().Lookup(c.plan.file(r.path))
	operation := v1alpha1.OperationCreate
	if exists {
		operation = v1alpha1.OperationUpdate
	}
	if exists && hash == r.hash || !ops.permits(operation) {
		return nil
	}
	return c.add(ctx, c, Change{
		Destination: c.key, UID: c.uid, Path: r.path, Content: r.content, Sealing: r.sealing,
		Operation: operation, Object: r.object, ResourceVersion: object.GetResourceVersion(), Time: time.Now().Truncate(time.Second),
		Author: c.author(r, attribution.Event{Operation: operation, Resource: c.seed.resource, Object: object}),
	})
}

// author is who made what the comparison found of an object: whoever made the change that waits to bring the same, and that the
// comparison overtakes, or else who the facts tell.
func (c *comparison) author(found rendered, event attribution.Event) attribution.Author {
	if waiting, ok := c.queue.pending(found.path); ok && waiting.hash == found.hash && waiting.author.Known() {
		return waiting.author
	}
	return c.worker.services.author(event)
}

// looksAt says whether the comparison decides about an object.
func (c *comparison) looksAt(o Object) bool {
	return o.resource() == c.seed.resource && (len(c.seed.namespaces) == 0 || slices.Contains(c.seed.namespaces, o.Namespace))
}

// orphans gathers the files that no listed object maps to, those apart that are kept because the destination does not
// prune.
func (c *comparison) orphans(ctx context.Context) error {
	t := c.seed.resource
	folder, err := manifest.Folder{Group: t.Group, Version: t.Version, Resource: t.Resource}.Path()
	if err != nil {
		return fmt.Errorf("folder of %s: %w", t, err)
	}
	var removals []Change
	err = c.worker.walk(ctx, c.plan, folder, func(file managedFile) {
		_, live := c.live[file.path]
		switch {
		case live || !c.looksAt(file.object) || !c.plan.selection.removable(t, file.object.Namespace, c.worker.services.namespaces):
		case c.plan.prunes():
			removal := c.removal(file)
			removal.ResourceVersion = cmp.Or(c.listed[watch.Watch{Resource: t}], c.listed[watch.Watch{Resource: t, Namespace: file.object.Namespace}])
			removal.Author = c.worker.services.author(attribution.Event{Operation: removal.Operation, Resource: t, Object: file.object.unstructured()})
			removals = append(removals, removal)
		default:
			c.held = append(c.held, file)
		}
	})
	if err != nil {
		return err
	}
	// All of them are in one push, as many as they are.
	c.changes = append(c.changes, removals...)
	c.files += len(removals)
	return nil
}

// managedFile is a file that carries the layout of the mirror.
type managedFile struct {
	path   string
	object Object
}

// parseManaged reads a path below the base folder.
func parseManaged(below string) (managedFile, bool) {
	folder, ok := manifest.ManagedPath(below)
	return managedFile{path: below, object: Object{
		Group: folder.Group, Version: folder.Version, Resource: folder.Resource, Namespace: folder.Namespace,
		Name: strings.TrimSuffix(path.Base(below), ".yaml"),
	}}, ok
}

// walk visits the managed files in a folder below the base folder. It ends with ctx: a branch may have a million files.
func (w *worker) walk(ctx context.Context, p *destinationPlan, folder string, visit func(managedFile)) error {
	base := p.object.Spec.BaseFolder
	err := w.branch.Snapshot().Walk(p.file(folder), func(file string, _ gitrepo.Hash) error {
		if managed, ok := parseManaged(strings.TrimPrefix(strings.TrimPrefix(file, base), "/")); ok {
			visit(managed)
		}
		return ctx.Err()
	})
	return wrap("look at the files", err)
}

// removal is the change that takes an orphan away.
func (d *destination) removal(file managedFile) Change {
	return Change{
		Destination: d.key, UID: d.uid, Path: file.path, Operation: v1alpha1.OperationDelete,
		Object: file.object, Time: time.Now().Truncate(time.Second),
	}
}

// pushSeed pushes what comparisons found as one commit, or as one for each author as far as they are known.
func (w *worker) pushSeed(ctx context.Context, members []member, m member, changes []Change, listed map[watch.Watch]string) (pushed, error) {
	if len(changes) == 0 {
		return pushed{}, nil
	}
	b := &batch{member: m, listed: listed}
	for _, g := range groupFound(m.plan.object.Spec.Granularity, changes) {
		if err := w.stage(m, g, true, &b.pushed); err != nil {
			return pushed{}, err
		}
	}
	if err := w.push(ctx, members, []*batch{b}); err != nil {
		return pushed{}, err
	}
	m.record.orphansRemoved(b.pushed.removed)
	return b.pushed, nil
}

// announceSeed makes the Events of what the remote has accepted of a push of comparisons; orphans says of which kind the files are that
// were removed. A process that dies before leaves them out.
func (w *worker) announceSeed(m member, p pushed, orphans string) {
	if p.written > 0 {
		w.services.event(m.plan.object, corev1.EventTypeNormal, reasonSeeded, fmt.Sprintf(
			"A comparison with the cluster has written %s to branch %s; the last commit is %s", counted.Count(p.written, "file"), w.key.branch, p.last))
	}
	if p.removed > 0 {
		w.services.event(m.plan.object, corev1.EventTypeNormal, reasonOrphansRemoved, fmt.Sprintf(
			"A comparison with the cluster has removed %s %s from branch %s; the last commit is %s",
			counted.Count(p.removed, "file"), orphans, w.key.branch, p.last))
	}
}
