// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// A comparison is pushed in parts of comparePartBytes or comparePartFiles, which bounds its memory; in smaller parts if
	// other writers push to the branch.
	comparePartBytes = 8 << 20
	comparePartFiles = 10_000
)

// comparer compares destinations with the cluster.
type comparer struct {
	lister     lister
	namespaces namespaceLookup
	// running reports whether every watch that a destination needs for a type has synced; starting reports whether one has
	// neither synced nor failed.
	running, starting func(*destinationPlan, schema.GroupVersionResource) bool
	// author returns the author of a change that a comparison has found, if that is certain.
	author func(attribution.Event) attribution.Author
	marks  marking
	memory memory
	remote *remoteBranch
	race   *race
	pusher *seedPusher
	// changed requests an update of conditions.
	changed func()
	// event records an Event of a destination.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
}

// compare runs the due comparisons of a member: one, and others until interrupt returns true. It reports whether there was one.
// Errors of the cluster are recorded with the type and retried later; errors of the branch are returned.
func (c *comparer) compare(ctx context.Context, members []member, m member, interrupt func() bool) (more bool, err error) {
	r := &round{comparer: c, members: members, member: m, interrupt: interrupt, done: map[schema.GroupVersionResource]bool{}}
	return r.run(ctx)
}

// round is a sequence of comparisons of one destination that share commits, because users change objects of several types
// at once.
//
// It runs in the worker, so no row is staged meanwhile: rows that are already staged are older than its lists, and later
// rows are distinguished by the resourceVersion of the lists. A round compares a type once, because the changes of the first
// comparison may not be on the branch yet.
type round struct {
	comparer *comparer
	members  []member
	member   member
	// interrupt reports whether other work comes before the next comparison.
	interrupt func() bool
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
	if !r.member.plan.prunes() {
		r.member.destination.record.beginRound()
		defer r.member.destination.record.endRound()
	}
	defer func() {
		for _, c := range r.all {
			r.member.destination.seeds.putBack(c.seed)
		}
	}()
	for ctx.Err() == nil && (!more || !r.interrupt()) {
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
	return r.member.destination.seeds.take(func(t schema.GroupVersionResource) bool {
		return !r.done[t] && r.comparer.running(r.member.plan, t)
	}, func(t schema.GroupVersionResource) bool { return r.comparer.starting(r.member.plan, t) })
}

// compare runs one comparison, up to the push.
func (r *round) compare(ctx context.Context, next seed) error {
	r.done[next.resource] = true
	c := &comparison{comparer: r.comparer, round: r, member: r.member, seed: next, began: time.Now()}
	r.all, r.current = append(r.all, c), c
	err := c.run(ctx)
	r.current = nil
	var list listError
	if errors.As(err, &list) {
		klog.FromContext(ctx).Info("Failed to compare type",
			"destination", r.member.destination.key, "type", next.resource, "reason", err.Error())
		r.drop(c)
		r.member.destination.seeds.failed(next, err)
		r.comparer.changed()
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

// add adds changes that a comparison has found.
func (r *round) add(c *comparison, changes ...outbox.Change) {
	c.changes = append(c.changes, changes...)
	r.files += len(changes)
	for _, change := range changes {
		r.bytes += len(change.Content)
	}
}

// flushFull pushes the pending changes if they fill a part.
func (r *round) flushFull(ctx context.Context) error {
	if r.bytes < comparePartBytes && r.files < r.comparer.race.bound(comparePartFiles) {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return branchError{err}
	}
	return nil
}

// flush pushes the pending changes. The complete comparisons have then succeeded. The running one has brought its objects so far to the
// branch.
func (r *round) flush(ctx context.Context) error {
	var changes []outbox.Change
	listed := map[watch.Watch]position{}
	for _, c := range r.all {
		changes = append(changes, c.changes...)
		maps.Copy(listed, c.listed)
	}
	pushed, err := r.comparer.pusher.push(ctx, r.members, r.member, changes, listed)
	if err != nil {
		return err
	}
	r.comparer.pusher.announce(r.member, pushed, "that no object maps to")
	r.files, r.bytes = 0, 0
	for _, c := range r.all {
		c.changes = nil
		of := pushed.found[c.seed.resource]
		c.found.written += of.written
		c.found.removed += of.removed
		if c == r.current {
			c.partPushed()
		} else {
			c.succeeded(ctx)
		}
	}
	r.all = slices.DeleteFunc(r.all, func(c *comparison) bool { return c != r.current })
	return nil
}
