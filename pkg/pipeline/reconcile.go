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
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// reconciliation is one reconcile of one pipeline.
type reconciliation struct {
	pipelines *pipelines
	pipeline  *pipeline
	// object is the current object of the pipeline.
	object *v1alpha1.SyncPipeline
	now    time.Time
	// held is why nothing is watched and sent; zero if the pipeline runs.
	held conditions.Reason
}

// reconcile starts or stops what the spec of a pipeline requires, and writes its status.
func (c *pipelines) reconcile(ctx context.Context, name string) (again time.Time, err error) {
	object, err := c.read(ctx, name)
	if err != nil {
		return again, err
	}
	p, err := c.ensureRunning(ctx, name, object)
	if err != nil || p == nil {
		return again, err
	}
	p.statusQueued.Store(false)
	r := &reconciliation{pipelines: c, pipeline: p, object: object, now: c.shared.Clock.Now()}
	p.lastError = r.apply(ctx)
	r.schedule()
	return again, utilerrors.NewAggregate([]error{p.lastError, r.writeStatus(ctx)})
}

// read reads a pipeline from the API, because the cache may lack the last write of the status. It returns nil if there is none.
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

// ensureRunning returns the running pipeline of an object, which is nil if the object does not exist. It removes the running pipeline of a
// deleted object with the same name first.
func (c *pipelines) ensureRunning(ctx context.Context, name string, object *v1alpha1.SyncPipeline) (*pipeline, error) {
	c.mu.Lock()
	p := c.running[name]
	c.mu.Unlock()
	if p != nil && (object == nil || object.UID != p.uid) {
		if err := c.remove(ctx, p); err != nil {
			return nil, err
		}
		p = nil
	}
	if p != nil || object == nil {
		return p, nil
	}
	p = c.newPipeline(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[name] = p
	return p, nil
}

// remove stops a deleted pipeline, and deletes its ledgers and metrics.
func (c *pipelines) remove(ctx context.Context, p *pipeline) error {
	if err := c.hold(ctx, p); err != nil {
		return err
	}
	p.setSinks(nil)
	if err := c.dropLeaving(ctx, p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, p.name)
	forgetPipeline(p.name)
	return nil
}

// apply starts or stops what the spec requires. The ledgers of removed sinks are deleted last, when nothing writes to them any more.
func (r *reconciliation) apply(ctx context.Context) (err error) {
	c, p := r.pipelines, r.pipeline
	p.spec.Store(&r.object.Spec)
	if err := c.updateSinks(ctx, p, r.object); err != nil {
		return err
	}
	r.applyEdit()
	var unknown error
	r.held, unknown = r.holdReason(ctx)
	p.isHeld.Store(!r.held.IsZero())
	if p.isHeld.Load() {
		err = c.hold(ctx, p)
	} else {
		err = r.deliver(ctx)
	}
	if err != nil {
		return utilerrors.NewAggregate([]error{unknown, err})
	}
	return utilerrors.NewAggregate([]error{unknown, c.dropLeaving(ctx, p)})
}

// applyEdit applies a new generation of the spec to pending changes, and retries failed sinks.
func (r *reconciliation) applyEdit() {
	p := r.pipeline
	if p.generation == r.object.Generation {
		return
	}
	p.generation = r.object.Generation
	for _, s := range p.sinks {
		s.ledger.ApplyConfig()
		s.tryNow()
	}
}

// deliver observes the selected objects, starts the workers of the sinks and advances runs.
func (r *reconciliation) deliver(ctx context.Context) error {
	if err := r.pipelines.observe(ctx, r.pipeline); err != nil {
		return err
	}
	for _, s := range r.pipeline.sinks {
		r.pipelines.startWorker(ctx, r.pipeline, s)
	}
	r.advance(ctx)
	return nil
}

// schedule enqueues the pipeline for the next poll, the next resync and the next permission check.
func (r *reconciliation) schedule() {
	queue, name := r.pipelines.queue, r.pipeline.name
	queue.AddAfter(name, access.DeniedTTL)
	if r.pipeline.isHeld.Load() {
		return
	}
	for _, due := range []time.Time{r.pollDue(), r.resyncDue()} {
		if !due.IsZero() && due.After(r.now) {
			queue.AddAfter(name, due.Sub(r.now))
		}
	}
}
