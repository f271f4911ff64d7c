// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// listError is an error of the source cluster. It concerns one type, not the branch.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// comparison compares the files of one type of one destination with the cluster.
type comparison struct {
	comparer *comparer
	round    *round
	member   member

	seed  seed
	began time.Time
	live  pathSet
	// listed is how far each scope was compared. A pushed part clears it. Once all lists have ended, it has all scopes, without through.
	listed map[watch.Watch]position
	// changes have not been pushed yet.
	changes []outbox.Change
	// held are the orphans that are kept.
	held []managedFile
	// unwritten is the number of objects that cannot be written as files, unwrittenError the error of the first.
	unwritten      int
	unwrittenError error
	found          found
}

// run finds the changes.
func (c *comparison) run(ctx context.Context) error {
	c.live, c.listed = newPathSet(), map[watch.Watch]position{}
	complete := map[watch.Watch]position{}
	for _, scope := range c.scopes() {
		resourceVersion, err := c.comparer.lister.List(ctx, scope, func(object *unstructured.Unstructured, resourceVersion string) error {
			key := keyOf(object.GetNamespace(), object.GetName())
			c.listed[scope] = position{resourceVersion: resourceVersion, through: max(key, c.listed[scope].through)}
			return c.visit(ctx, object)
		})
		if err != nil {
			return classify(fmt.Errorf("list %s: %w", scope, err))
		}
		complete[scope] = position{resourceVersion: resourceVersion}
	}
	c.listed = complete
	if err := c.orphans(ctx); err != nil {
		return classify(err)
	}
	return nil
}

// partPushed records that the files of the objects that have been compared so far are on the branch.
func (c *comparison) partPushed() {
	for scope, at := range c.listed {
		c.member.destination.seeds.listedAt(scope, at)
	}
	clear(c.listed)
}

// succeeded records a comparison whose changes are on the branch.
func (c *comparison) succeeded(ctx context.Context) {
	c.found.held = len(c.held)
	c.member.destination.seeds.succeeded(c.seed, c.listed, c.found)
	c.member.destination.record.holdOnly(c.looksAt, c.held, c.member.hasFile)
	c.member.destination.record.compared()
	if c.unwritten > 0 {
		c.comparer.event(c.member.plan.object, corev1.EventTypeWarning, reasonNotRendered, notRenderedMessage(c.unwritten, c.unwrittenError))
	}
	c.comparer.changed()
	klog.FromContext(ctx).Info("Compared with the cluster", "destination", c.member.destination.key,
		"type", c.seed.resource.GroupResource().String(), "objects", c.live.len(),
		"written", c.found.written, "removed", c.found.removed, "orphansHeld", c.found.held,
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
	ops := c.member.plan.operations(c.seed.resource, object, c.comparer.namespaces)
	if ops == 0 {
		return nil
	}
	r, err := render(c.seed.resource, object, true)
	if r.path != "" {
		c.live.add(r.path) // The file of an object that cannot be rendered stays as it is.
	}
	if err == nil {
		r, err = c.member.plan.written(r, object)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to render object", "destination", c.member.destination.key)
		c.unwritten++
		if c.unwrittenError == nil {
			c.unwrittenError = err
		}
		return nil
	}
	hash, exists := c.comparer.remote.tree().Lookup(c.member.plan.file(r.path))
	operation := v1alpha1.OperationCreate
	if exists {
		operation = v1alpha1.OperationUpdate
	}
	change := outbox.Change{
		Destination: c.member.destination.key, UID: c.member.destination.uid, Path: r.path, Content: r.content, Encryption: r.encryption,
		Operation: operation, Object: r.object, Kind: r.kind, ObjectUID: r.uid,
		ResourceVersion: object.GetResourceVersion(), Time: time.Now().Truncate(time.Millisecond),
	}
	if exists && hash == r.hash {
		if !c.comparer.memory.remembers(hash) {
			change.Marks = c.comparer.marks.of(r.object, object)
			c.comparer.memory.remember(notedFile(change, hash))
		}
		return nil
	}
	if !ops.permits(operation) || c.member.destination.withheld.holds(c.member.plan.file(r.path), r.hash) {
		return nil
	}
	change.Author = c.author(r, object.GetResourceVersion(), attribution.Event{Operation: operation, Resource: c.seed.resource, Object: object})
	change.Marks = c.comparer.marks.of(r.object, object)
	c.round.add(c, change)
	return c.round.flushFull(ctx)
}

// author returns the author of a change that the comparison has found at a resourceVersion: that of a pending row with the same content
// (none if the file is removed), which the comparison overtakes, or else the one that the attribution facts show. A row of a later change
// has the author of that change, also if it has the same content.
func (c *comparison) author(found rendered, resourceVersion string, event attribution.Event) attribution.Author {
	waiting, ok := c.member.destination.queue.Pending(found.path)
	if ok && waiting.Hash == found.hash && waiting.Author.Known() {
		order, err := resourceversion.CompareResourceVersion(waiting.ResourceVersion, resourceVersion)
		if err == nil && order <= 0 {
			return waiting.Author
		}
	}
	return c.comparer.author(event)
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
	err = walkFiles(ctx, c.comparer.remote.tree(), c.member.plan, folder, func(file managedFile) {
		switch {
		case c.live.has(file.path) || !c.looksAt(file.object) || !c.member.plan.selection.removable(t, file.object.Namespace, c.comparer.namespaces):
		case c.member.destination.withheld.holds(c.member.plan.file(file.path), gitrepo.Hash{}):
		case c.member.plan.prunes():
			removal := c.member.destination.removal(file)
			removal.ResourceVersion = cmp.Or(c.listed[watch.Watch{Resource: t}],
				c.listed[watch.Watch{Resource: t, Namespace: file.object.Namespace}]).resourceVersion
			removal.Author = c.author(rendered{path: file.path}, removal.ResourceVersion,
				attribution.Event{Operation: removal.Operation, Resource: t, Object: file.object.Unstructured()})
			removals = append(removals, removal)
		default:
			c.held = append(c.held, file)
		}
	})
	if err != nil {
		return err
	}
	// All removals are in one push, however many there are.
	c.round.add(c, removals...)
	return nil
}

// removal returns the change that removes an orphan.
func (d *destination) removal(file managedFile) outbox.Change {
	return outbox.Change{
		Destination: d.key, UID: d.uid, Path: file.path, Operation: v1alpha1.OperationDelete,
		Object: file.object, Time: time.Now().Truncate(time.Millisecond),
	}
}
