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
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
)

// pipe is a pipeline as it is carried out. Turns alone change it, of which there is one at a time.
type pipe struct {
	name string
	uid  types.UID
	// spec is the one that is carried out.
	spec atomic.Pointer[v1alpha1.SyncPipelineSpec]
	// generation is that of the spec.
	generation int64
	// asked says that a turn has been asked for because there is something new to show.
	asked atomic.Bool
	// changed asks for one.
	changed func()
	// isHeld says that nothing is watched and sent.
	isHeld atomic.Bool

	// mu lets others look at the sinks beside turns.
	mu    sync.Mutex
	sinks []*sink
	// leaving are those whose rows are to be removed.
	leaving []*sink

	// fan is who is told of what is observed, nil while nothing is; selection is what that is.
	fan       *fan
	selection observe.Selection
	// listing is the last list.
	listing *task
	run     *run
	// judged is what was found out last about who may have it sent; nil when nothing was.
	judged *judgement
	// trouble is what went wrong in the last turn.
	trouble error
	// polled, resynced and written are when everything was last listed, had been sent again, and was shown.
	polled, resynced, written time.Time
}

// newPipe carries nothing out yet.
func (c *pipelines) newPipe(of *v1alpha1.SyncPipeline) *pipe {
	p := &pipe{name: of.Name, uid: of.UID}
	p.changed = func() {
		// Of a thousand changes in a second one is shown.
		if p.asked.CompareAndSwap(false, true) {
			c.queue.AddAfter(p.name, writePeriod)
		}
	}
	return p
}

func (p *pipe) debounce() time.Duration { return p.spec.Load().Debounce.Duration }
func (p *pipe) maxWait() time.Duration  { return p.spec.Load().Batch.MaxWait.Duration }
func (p *pipe) maxItems() int           { return int(*p.spec.Load().Batch.MaxItems) }

// bringSinks has a pipe have the sinks of a pipeline: those that it has go on, others are opened, and what is left over leaves.
func (c *pipelines) bringSinks(ctx context.Context, p *pipe, of *v1alpha1.SyncPipeline) error {
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

// reopenSink opens a sink, also one that has left and whose rows are still to be removed.
func (c *pipelines) reopenSink(ctx context.Context, p *pipe, of *v1alpha1.SyncPipeline, spec *v1alpha1.PipelineSink) (*sink, error) {
	if slices.ContainsFunc(p.leaving, func(s *sink) bool { return s.prefix == prefixOf(of, spec) }) {
		if err := c.dropLeaving(ctx, p); err != nil {
			return nil, err
		}
	}
	return c.openSink(ctx, p, of, spec)
}

// setSinks has others than before, of which those leave that are not among them.
func (p *pipe) setSinks(next []*sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sinks {
		if !slices.Contains(next, s) {
			p.leaving = append(p.leaving, s)
		}
	}
	p.sinks = next
}

// dropLeaving removes what sinks knew that are told of nothing any more.
func (c *pipelines) dropLeaving(ctx context.Context, p *pipe) error {
	for len(p.leaving) > 0 {
		s := p.leaving[0]
		s.worker.stop()
		s.writer.stop()
		if err := dropLedger(ctx, c.rows, s.prefix); err != nil {
			return fmt.Errorf("remove what sink %s knew: %w", s.spec.Name, err)
		}
		if !p.hasSink(s.spec.Name) {
			s.numbers.forget()
		}
		p.leaving = p.leaving[1:]
	}
	return nil
}

// hasSink says whether there is a sink of a name.
func (p *pipe) hasSink(name string) bool {
	return slices.ContainsFunc(p.sinks, func(s *sink) bool { return s.spec.Name == name })
}

// observe has the sinks told of what the pipeline selects. Whatever is new, a sink as well as a selection, has everything listed.
func (c *pipelines) observe(ctx context.Context, p *pipe) error {
	fan, selection := fanOf(p), selectionOf(p.spec.Load())
	if p.fan != nil && slices.Equal(p.fan.ledgers, fan.ledgers) {
		if equality.Semantic.DeepEqual(p.selection, selection) {
			return nil
		}
		fan = p.fan
	}
	if err := c.observer.Set(ctx, p.uid, selection, fan); err != nil {
		return fmt.Errorf("have watched what it selects: %w", err)
	}
	p.fan, p.selection, p.polled = fan, selection, c.config.Clock.Now()
	return nil
}

// hold stops whatever goes on. What is on its way is sent again later, as the same batch.
func (c *pipelines) hold(ctx context.Context, p *pipe) error {
	p.listing.stop()
	p.run = nil
	for _, s := range p.sinks {
		s.worker.stop()
	}
	if p.fan == nil {
		return nil
	}
	if err := c.observer.Unset(ctx, p.uid); err != nil {
		return fmt.Errorf("have watched no more what it selects: %w", err)
	}
	p.fan = nil
	return nil
}

// stop ends everything when the term does. The ledgers write what they have in memory.
func (p *pipe) stop() {
	p.listing.stop()
	for _, s := range p.sinks {
		s.worker.stop()
		s.writer.stop()
	}
}
