// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/condition"
)

// turn is a look at one pipeline.
type turn struct {
	*pipelines
	*pipe
	// object is the pipeline as it is now.
	object *v1alpha1.SyncPipeline
	now    time.Time
	// held says why nothing goes on.
	held condition.Why
}

// reconcile brings the deliveries of a pipeline to what its spec asks for, and writes its status.
func (c *pipelines) reconcile(ctx context.Context, name string) (again time.Time, err error) {
	object, err := c.read(ctx, name)
	if err != nil {
		return again, err
	}
	p, err := c.pipeOf(ctx, name, object)
	if err != nil || p == nil {
		return again, err
	}
	p.asked.Store(false)
	t := &turn{pipelines: c, pipe: p, object: object, now: c.shared.Clock.Now()}
	err = t.bring(ctx)
	t.trouble = err
	t.schedule()
	return again, utilerrors.NewAggregate([]error{err, t.report(ctx)})
}

// read returns a pipeline as it is now, nil if there is none. A cache may be older than what was written last.
func (c *pipelines) read(ctx context.Context, name string) (*v1alpha1.SyncPipeline, error) {
	found, err := c.api.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	return found, nil
}

// pipeOf is how a pipeline is carried out, nil if there is none. What had its name before ends.
func (c *pipelines) pipeOf(ctx context.Context, name string, object *v1alpha1.SyncPipeline) (*pipe, error) {
	c.mu.Lock()
	p := c.pipes[name]
	c.mu.Unlock()
	if p != nil && (object == nil || object.UID != p.uid) {
		if err := c.end(ctx, p); err != nil {
			return nil, err
		}
		p = nil
	}
	if p != nil || object == nil {
		return p, nil
	}
	p = c.newPipe(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pipes[name] = p
	return p, nil
}

// end lets go of a pipeline that has been deleted, with what its sinks knew.
func (c *pipelines) end(ctx context.Context, p *pipe) error {
	if err := c.hold(ctx, p); err != nil {
		return err
	}
	p.setSinks(nil)
	if err := c.dropLeaving(ctx, p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pipes, p.name)
	forgetPipeline(p.name)
	return nil
}

// bring has what goes on be what the spec asks for.
func (t *turn) bring(ctx context.Context) (err error) {
	t.spec.Store(&t.object.Spec)
	if err := t.bringSinks(ctx, t.pipe, t.object); err != nil {
		return err
	}
	t.reconsider()
	var unknown error
	t.held, unknown = t.heldBack(ctx)
	t.isHeld.Store(t.held != (condition.Why{}))
	if t.isHeld.Load() {
		err = t.hold(ctx, t.pipe)
	} else {
		err = t.deliver(ctx)
	}
	if err != nil {
		return utilerrors.NewAggregate([]error{unknown, err})
	}
	return utilerrors.NewAggregate([]error{unknown, t.dropLeaving(ctx, t.pipe)})
}

// reconsider has an edit count for what waits already, and tries again whoever has failed.
func (t *turn) reconsider() {
	if t.generation == t.object.Generation {
		return
	}
	t.generation = t.object.Generation
	for _, s := range t.sinks {
		s.ledger.ApplyConfig()
		s.tryNow()
	}
}

// deliver has the sinks told.
func (t *turn) deliver(ctx context.Context) error {
	if err := t.observe(ctx, t.pipe); err != nil {
		return err
	}
	for _, s := range t.sinks {
		t.engage(ctx, t.pipe, s)
	}
	t.goOn(ctx)
	return nil
}

// schedule has the pipeline looked at again when something of it is due. Permissions are asked for all the while.
func (t *turn) schedule() {
	t.queue.AddAfter(t.name, access.DeniedTTL)
	if t.isHeld.Load() {
		return
	}
	for _, due := range []time.Time{t.pollDue(), t.resyncDue()} {
		if !due.IsZero() && due.After(t.now) {
			t.queue.AddAfter(t.name, due.Sub(t.now))
		}
	}
}
