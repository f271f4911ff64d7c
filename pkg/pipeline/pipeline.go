// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
)

// pipeline is a running pipeline. Only reconciles change it, one at a time.
type pipeline struct {
	name string
	uid  types.UID
	// spec is the reconciled spec.
	spec atomic.Pointer[v1alpha1.SyncPipelineSpec]
	// generation is the generation of spec.
	generation int64
	// statusQueued is set if a reconcile is enqueued to update the status.
	statusQueued atomic.Bool
	// changed enqueues a reconcile to update the status.
	changed func()
	// isHeld is set while nothing is watched and sent.
	isHeld atomic.Bool

	// mu guards sinks, which other goroutines read.
	mu    sync.Mutex
	sinks []*sink
	// leaving are removed sinks whose rows must be deleted.
	leaving []*sink

	// fan is the target of the observer, nil while nothing is observed; selection is what it selects, of types.
	fan       *fanout
	selection observe.Selection
	types     *watch.Snapshot
	// listing is the last list.
	listing *task
	run     *run
	// permission is the result of the last permission check, nil if there was none.
	permission *permissionCheck
	// lastError is the error of the last reconcile.
	lastError error
	// polled is the time of the last list, resynced of the last resync, and written of the last status update.
	polled, resynced, written time.Time
}

// newPipeline returns a pipeline that does nothing yet.
func (c *pipelines) newPipeline(of *v1alpha1.SyncPipeline) *pipeline {
	p := &pipeline{name: of.Name, uid: of.UID}
	p.changed = func() {
		// Many changes within a period cause one status update.
		if p.statusQueued.CompareAndSwap(false, true) {
			c.queue.AddAfter(p.name, writePeriod)
		}
	}
	return p
}

// debounce, maxWait and maxItems return the current values of the spec.
func (p *pipeline) debounce() time.Duration { return p.spec.Load().Debounce.Duration }
func (p *pipeline) maxWait() time.Duration  { return p.spec.Load().Batch.MaxWait.Duration }
func (p *pipeline) maxItems() int           { return int(*p.spec.Load().Batch.MaxItems) }

// updateSinks updates the sinks from the spec: it keeps existing ones, opens new ones, and marks the others as leaving.
func (c *pipelines) updateSinks(ctx context.Context, p *pipeline, of *v1alpha1.SyncPipeline) error {
	var next, opened []*sink
	for i := range of.Spec.Sinks {
		spec := &of.Spec.Sinks[i]
		known := slices.IndexFunc(p.sinks, func(s *sink) bool { return s.prefix == prefixOf(of, spec) })
		if known >= 0 {
			p.sinks[known].edit(spec)
			next = append(next, p.sinks[known])
			continue
		}
		s, err := c.reopenSink(ctx, p, of, spec)
		if err != nil {
			for _, other := range opened {
				other.writer.stop()
			}
			return err
		}
		next, opened = append(next, s), append(opened, s)
	}
	p.setSinks(next)
	return nil
}

// reopenSink opens a sink. If the same sink is leaving, its rows are deleted first.
func (c *pipelines) reopenSink(ctx context.Context, p *pipeline, of *v1alpha1.SyncPipeline, spec *v1alpha1.PipelineSink) (*sink, error) {
	if slices.ContainsFunc(p.leaving, func(s *sink) bool { return s.prefix == prefixOf(of, spec) }) {
		if err := c.dropLeaving(ctx, p); err != nil {
			return nil, err
		}
	}
	return c.openSink(ctx, p, of, spec)
}

// setSinks replaces the sinks. Those that are not among the new ones are leaving.
func (p *pipeline) setSinks(next []*sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sinks {
		if !slices.Contains(next, s) {
			p.leaving = append(p.leaving, s)
		}
	}
	p.sinks = next
}

// dropLeaving stops removed sinks and deletes their rows.
func (c *pipelines) dropLeaving(ctx context.Context, p *pipeline) error {
	for len(p.leaving) > 0 {
		s := p.leaving[0]
		s.worker.stop()
		s.writer.stop()
		if err := dropLedger(ctx, c.rows, s.prefix); err != nil {
			return fmt.Errorf("delete the ledger of sink %s: %w", s.spec.Name, err)
		}
		if !p.hasSink(s.spec.Name) {
			s.numbers.forget()
		}
		p.leaving = p.leaving[1:]
	}
	return nil
}

// hasSink reports whether there is a sink with a name.
func (p *pipeline) hasSink(name string) bool {
	return slices.ContainsFunc(p.sinks, func(s *sink) bool { return s.spec.Name == name })
}

// observe reports the selected objects to the sinks. A new sink or a changed selection causes a full list.
func (c *pipelines) observe(ctx context.Context, p *pipeline) error {
	fan, selection, polled := fanOf(p), selectionOf(p.spec.Load()), c.shared.Clock.Now()
	if p.fan != nil && slices.Equal(p.fan.ledgers, fan.ledgers) {
		if equality.Semantic.DeepEqual(p.selection, selection) {
			if p.types == p.permission.types {
				return nil
			}
			polled = p.polled
		}
		fan = p.fan
	}
	if err := c.observer.Set(ctx, p.uid, p.permission.types, selection, fan); err != nil {
		return fmt.Errorf("watch what it selects: %w", err)
	}
	p.fan, p.types, p.selection, p.polled = fan, p.permission.types, selection, polled
	return nil
}

// hold stops observation and delivery. A batch in flight is sent again later.
func (c *pipelines) hold(ctx context.Context, p *pipeline) error {
	p.listing.stop()
	p.run = nil
	for _, s := range p.sinks {
		s.worker.stop()
	}
	if p.fan == nil {
		return nil
	}
	if err := c.observer.Unset(ctx, p.uid); err != nil {
		return fmt.Errorf("stop watching what it selects: %w", err)
	}
	p.fan = nil
	return nil
}

// stop stops the pipeline when the leader term ends. The ledgers write their pending changes.
func (p *pipeline) stop() {
	p.listing.stop()
	for _, s := range p.sinks {
		s.worker.stop()
		s.writer.stop()
	}
}
