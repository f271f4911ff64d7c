// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/gitrepo"
	"github.com/configbutler/slipstream/pkg/manifest"
	"github.com/configbutler/slipstream/pkg/source"
)

const (
	// A comparison is pushed in parts of comparePartBytes or comparePartFiles, so that it
	// holds no more than that in memory.
	comparePartBytes = 8 << 20
	comparePartFiles = 10_000
	// sweepAge is how old a destination without rules is before its files are taken for
	// leftovers: a destination is often applied a moment before its rules.
	sweepAge = time.Minute
)

// listError marks an error of the cluster, which concerns one type, not the branch.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// compareNext makes one comparison that is due, or, when there is none, sweeps. It returns
// whether there may be another. An error of the cluster is noted with its type, to be tried
// again later; an error of the branch is returned.
func (w *worker) compareNext(ctx context.Context, members []member) (more bool, err error) {
	for _, m := range members {
		next, ok := m.seeds.take(func(t schema.GroupVersionResource) bool { return w.services.running(m.plan, t) })
		if !ok {
			continue
		}
		if m.destination.plan.Load() != m.plan {
			// It may be the new plan that asks for it. The next cycle, for which the
			// controller wakes the worker, goes by that.
			m.seeds.putBack(next)
			return false, nil
		}
		return true, w.compare(ctx, members, m, next)
	}
	for _, m := range members {
		if err := w.sweep(ctx, members, m); err != nil {
			m.seeds.sweepAgain()
			return false, err
		}
	}
	return false, nil
}

// compare makes one comparison.
func (w *worker) compare(ctx context.Context, members []member, m member, next seed) error {
	err := (&comparison{worker: w, members: members, member: m, seed: next}).run(ctx)
	var list listError
	switch {
	case errors.As(err, &list):
		klog.FromContext(ctx).Info("Type cannot be compared", "destination", m.key, "type", next.resource, "reason", err.Error())
		m.seeds.failed(next, err)
		w.services.changed()
		return nil
	case err != nil:
		m.seeds.putBack(next)
		return err
	}
	return nil
}

// comparison brings the files of one type of one destination to what the cluster holds.
//
// It runs in the worker, so no row is staged meanwhile: rows that are already staged are
// older than the lists it makes, and rows that come later are told apart by the
// resourceVersion of the lists.
type comparison struct {
	worker  *worker
	members []member
	member
	seed seed

	live    map[string]struct{}
	changes []Change
	bytes   int
	found   found
}

func (c *comparison) run(ctx context.Context) error {
	began := time.Now()
	c.live = map[string]struct{}{}
	listed := map[source.Watch]string{}
	for _, scope := range c.scopes() {
		resourceVersion, err := c.worker.services.lister.List(ctx, scope, func(object *unstructured.Unstructured) error {
			return c.visit(ctx, object)
		})
		if err != nil {
			return classify(fmt.Errorf("list %s: %w", scope, err))
		}
		listed[scope] = resourceVersion
	}
	held, err := c.orphans(ctx, listed)
	if err != nil {
		return listError{err}
	}
	if err := c.flush(ctx, listed); err != nil {
		return err
	}
	c.found.held = len(held)
	c.seeds.succeeded(c.seed, listed, c.found)
	c.record.holdOnly(c.looksAt, held)
	c.record.compared()
	c.worker.services.changed()
	klog.FromContext(ctx).Info("Compared with the cluster", "destination", c.key, "type", c.seed.resource.GroupResource().String(),
		"objects", len(c.live), "written", c.found.written, "removed", c.found.removed, "orphansHeld", c.found.held,
		"took", time.Since(began).Round(time.Millisecond).String())
	return nil
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
func (c *comparison) scopes() []source.Watch {
	if len(c.seed.namespaces) == 0 {
		return c.plan.selection.watches(c.seed.resource)
	}
	scopes := make([]source.Watch, len(c.seed.namespaces))
	for i, namespace := range c.seed.namespaces {
		scopes[i] = source.Watch{Resource: c.seed.resource, Namespace: namespace}
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
	return c.add(ctx, Change{
		Destination: c.key, UID: c.uid, Path: r.path, Content: r.content, Sealing: r.sealing,
		Operation: operation, Object: r.object, ResourceVersion: object.GetResourceVersion(), Time: time.Now().Truncate(time.Second),
		Author: c.worker.services.author(attribution.Event{Operation: operation, Resource: c.seed.resource, Object: object}),
	})
}

func (c *comparison) add(ctx context.Context, change Change) error {
	c.changes = append(c.changes, change)
	c.bytes += len(change.Content)
	if c.bytes < comparePartBytes && len(c.changes) < comparePartFiles {
		return nil
	}
	if err := c.flush(ctx, nil); err != nil {
		return branchError{err}
	}
	return nil
}

// flush pushes what has gathered as one commit. listed is given with the last part.
func (c *comparison) flush(ctx context.Context, listed map[source.Watch]string) error {
	changes := c.changes
	c.changes, c.bytes = nil, 0
	pushed, err := c.worker.pushSeed(ctx, c.members, c.member, changes, listed)
	c.found.written += pushed.written
	c.found.removed += pushed.removed
	return err
}

// looksAt says whether the comparison decides about an object.
func (c *comparison) looksAt(o Object) bool {
	return o.resource() == c.seed.resource && (len(c.seed.namespaces) == 0 || slices.Contains(c.seed.namespaces, o.Namespace))
}

// orphans gathers the files that no listed object maps to and returns those that are kept
// because the destination does not prune.
func (c *comparison) orphans(ctx context.Context, listed map[source.Watch]string) (held []managedFile, err error) {
	t := c.seed.resource
	folder, err := manifest.Folder{Group: t.Group, Version: t.Version, Resource: t.Resource}.Path()
	if err != nil {
		return nil, fmt.Errorf("folder of %s: %w", t, err)
	}
	err = c.worker.walk(ctx, c.plan, folder, func(file managedFile) {
		_, live := c.live[file.path]
		switch {
		case live || !c.looksAt(file.object) || !c.plan.selection.removable(t, file.object.Namespace, c.worker.services.namespaces):
		case c.plan.prunes():
			removal := c.removal(file)
			removal.ResourceVersion = cmp.Or(listed[source.Watch{Resource: t}], listed[source.Watch{Resource: t, Namespace: file.object.Namespace}])
			removal.Author = c.worker.services.author(attribution.Event{Operation: removal.Operation, Resource: t, Object: file.object.unstructured()})
			c.changes = append(c.changes, removal)
		default:
			held = append(held, file)
		}
	})
	return held, err
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

// pushSeed pushes what a comparison found as one commit, or as one for each author as far as they are known.
func (w *worker) pushSeed(ctx context.Context, members []member, m member, changes []Change, listed map[source.Watch]string) (pushed, error) {
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

// sweepableAt returns when files that no rule selects can be taken for leftovers: at once
// if the destination has or had rules, else when it is old enough.
func (d *destination) sweepableAt(p *destinationPlan) time.Time {
	if p.referred || d.hadRules.Load() {
		return time.Time{}
	}
	return p.object.CreationTimestamp.Add(sweepAge)
}

// sweep removes the files of types that are selected no more. It removes nothing while a
// rule of the destination is not in force, or of a group that discovery could not ask.
func (w *worker) sweep(ctx context.Context, members []member, m member) error {
	p := m.plan
	if m.destination.plan.Load() != p {
		return nil
	}
	if p.held || time.Now().Before(m.sweepableAt(p)) {
		w.tellSwept(m, found{}) // whoever asked for a comparison does not wait for this
		return nil
	}
	if !m.seeds.takeSweep() {
		return nil
	}
	selected := map[schema.GroupVersionResource]bool{}
	for _, t := range p.types() {
		selected[t.Resource] = true
	}
	lookedAt := func(o Object) bool { return !selected[o.resource()] }
	var changes []Change
	var held []managedFile
	err := w.walk(ctx, p, "", func(file managedFile) {
		switch {
		case !lookedAt(file.object):
		case p.locked(file.object) && !m.plainSecrets.Load():
			m.seeds.sweepWhenKnown()
		case p.uncertain(file.object.Group):
			m.seeds.sweepWhenKnown()
		case p.prunes():
			changes = append(changes, m.removal(file))
		default:
			held = append(held, file)
		}
	})
	if err != nil {
		return err
	}
	m.record.holdOnly(lookedAt, held)
	pushed, err := w.pushSeed(ctx, members, m, changes, nil)
	if err == nil {
		w.tellSwept(m, found{removed: pushed.removed, held: len(held)})
	}
	return err
}

// tellSwept answers those who asked for a comparison.
func (w *worker) tellSwept(m member, f found) {
	if m.seeds.swept(f) {
		w.services.changed()
	}
}
