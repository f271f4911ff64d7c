// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// reconcile brings an environment one step further to what its spec and its requests ask for. again is when it has to be reconciled
// even if nothing changes before.
func (c *environments) reconcile(ctx context.Context, name types.NamespacedName) (again time.Time, err error) {
	defer func() {
		if err != nil {
			c.leaveLine(name) // An environment that cannot start must not delay those behind it.
			err = fmt.Errorf("reconcile Environment %s: %w", name, err)
		}
	}()
	s, err := c.read(ctx, name)
	switch {
	case err != nil:
		return again, err
	case s == nil:
		c.forget(name)
		return again, nil
	}
	t := &turning{c, s}
	if s.environment.DeletionTimestamp != nil {
		return t.remove(ctx)
	}
	return t.proceed(ctx)
}

// proceed goes through what the package's comment says, in that order.
func (t *turning) proceed(ctx context.Context) (again time.Time, err error) {
	if over, err := t.expire(ctx); over || err != nil {
		return again, err
	}
	if err := t.claim(ctx); err != nil {
		return again, err
	}
	before := t.environment.DeepCopy()
	ended := t.fold()
	// Which requests are of some workloads only is not known any more once they are over.
	whole := slices.DeleteFunc(slices.Clone(ended), t.isPartial)
	consent, err := t.checkConsent(ctx)
	if err != nil {
		return again, err
	}
	t.offer = t.question()
	again = earliest(earliest(consent, t.checkRights(ctx)), expiryOf(t.environment))
	if err := t.takeUp(ctx); err != nil {
		return again, err
	}
	next := t.standInLine(t.next())
	if err := t.conclude(ctx, before, next); err != nil {
		if next.record != nil {
			t.line.undo(nameOf(t.environment))
		}
		return again, err
	}
	t.measureSource(ctx, &before.Status, whole)
	for _, record := range ended {
		t.events.ended(t.environment, record)
	}
	if t.undone != nil {
		klog.FromContext(ctx).Error(t.undone, "What was asked for cannot be done, trying again", "environment", nameOf(t.environment))
		again = earliest(again, t.now.Add(undonePause))
	}
	return earliest(again, next.again), nil
}

// undonePause is how long it takes until what could not be done is tried again, if nothing happens before.
const undonePause = 30 * time.Second

// conclude writes the status, and begins the run that has been chosen, if there is one.
func (t *turning) conclude(ctx context.Context, before *v1alpha1.Environment, next choice) (err error) {
	var records []*v1alpha1.SyncStatus
	if next.record != nil {
		if records, err = t.ready(ctx, next.record); err != nil {
			return err
		}
	}
	t.describe(records)
	t.report(next.held, next.record)
	if err := t.writeStatus(ctx, before); err != nil {
		return err
	}
	if next.record != nil {
		t.begin(ctx, t.job(records))
	}
	return nil
}

// question asks what the catalog would bring, unless that cannot be said at the moment.
func (t *turning) question() *offer {
	if t.busy || !t.obstacle.ok() {
		return nil
	}
	e, name := t.environment, nameOf(t.environment)
	asked := t.situation.question(t.runs.count(e.UID), t.sources.count(name), t.hasTarget(e))
	if count, _ := t.workloads(); count != nil {
		asked.there = count.Total
	}
	return t.offers.of(name, asked)
}

// standInLine has the chosen run wait for its turn, if it has to.
func (t *turning) standInLine(next choice) choice {
	name := nameOf(t.environment)
	if next.record == nil {
		t.leaveLine(name)
		return next
	}
	most := int(*t.policy.MaxSyncsPerMinute)
	ok, again := t.line.ask(name, next.record.Status.DetectedAt.Time, most)
	if ok {
		return next
	}
	// It does not say how many are before it: each status that is written has the environment looked at again, when they are fewer.
	return choice{again: earliest(next.again, again), held: verdict{v1alpha1.ReasonRateLimited,
		fmt.Sprintf("others are before it in line; of all syncs, at most %d begin in a minute and %d go on at once", most, maxRuns)}}
}

// writeStatus writes the status if it has changed. A Conflict says that what was decided with is out of date.
func (t *turning) writeStatus(ctx context.Context, before *v1alpha1.Environment) error {
	if equality.Semantic.DeepEqual(before.Status, t.environment.Status) {
		return nil
	}
	written, err := t.api.Environments(before.Namespace).UpdateStatus(ctx, t.environment, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	t.environment = written
	t.events.conditions.Announce(written, before.Status.Conditions, written.Status.Conditions)
	t.events.prompted(before, written, t.called(written.Status.LatestDependencySync))
	return nil
}

// forget lets go of an environment that is gone.
func (c *environments) forget(name types.NamespacedName) {
	c.offers.forget(name)
	c.sources.forget(name)
	c.config.Runner.Index.Set(name, nil)
	c.leaveLine(name)
	// Somebody has taken the finalizer out: what goes on writes for nobody.
	c.runs.cancel(name)
}

// leaveLine takes an environment out of the line, and has those looked at who may begin because of that.
func (c *environments) leaveLine(name types.NamespacedName) {
	for _, other := range c.line.leave(name) {
		c.queue.Add(other)
	}
}
