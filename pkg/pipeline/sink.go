// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// sink is a sink of a running pipeline, at one address.
type sink struct {
	spec    v1alpha1.PipelineSink
	prefix  string
	ledger  *ledger.Ledger
	state   *sinkStatus
	numbers sinkNumbers
	// wake ends the pause of the worker.
	wake chan struct{}
	// writer persists the ledger. worker delivers its changes; it is nil while nothing is sent.
	writer, worker *task
}

// openSink opens the ledger of a sink. It restores the status, unless that is about a sink with another address.
func (c *pipelines) openSink(ctx context.Context, p *pipeline, of *v1alpha1.SyncPipeline, spec *v1alpha1.PipelineSink) (*sink, error) {
	s := &sink{
		spec: *spec.DeepCopy(), prefix: prefixOf(of, spec), state: newSinkStatus(spec.Name), numbers: numbersOf(of.Name, spec.Name),
		wake: make(chan struct{}, 1),
	}
	if !p.hasSink(spec.Name) {
		s.state.restore(of)
	}
	var err error
	s.ledger, err = ledger.Open(ctx, ledger.Config{
		Table: c.rows, Prefix: s.prefix, Clock: c.shared.Clock,
		Debounce: p.debounce, MaxItems: p.maxItems, MaxWait: p.maxWait,
	})
	if err != nil {
		return nil, fmt.Errorf("open the ledger of sink %s: %w", spec.Name, err)
	}
	s.writer = start(ctx, s.ledger.Run, func() {})
	return s, nil
}

// edit applies a changed spec. Rejected objects are sent again, because the sink may accept them now.
func (s *sink) edit(spec *v1alpha1.PipelineSink) {
	if equality.Semantic.DeepEqual(s.spec, *spec) {
		return
	}
	s.worker.stop()
	s.spec = *spec.DeepCopy()
	s.state.reset()
	s.ledger.Expedite()
}

// startWorker starts the worker of a sink, unless it is running.
func (c *pipelines) startWorker(ctx context.Context, p *pipeline, s *sink) {
	if s.worker.isRunning() {
		return
	}
	to, err := c.connect(p, &s.spec)
	if err != nil {
		// Validation rejects such a spec; another version of the server has written it.
		s.state.recordFailure(err.Error(), c.shared.Clock.Now())
		return
	}
	w := &worker{
		ledger: s.ledger, to: to, retry: s.spec.Retry, state: s.state, numbers: s.numbers, clock: c.shared.Clock, wake: s.wake,
		changed: p.changed,
	}
	s.worker = start(ctx, func(ctx context.Context) {
		defer to.Close()
		var group wait.Group
		defer group.Wait()
		if of, ok := to.(failureReporter); ok {
			group.StartWithContext(ctx, func(ctx context.Context) { w.watchFailures(ctx, of) })
		}
		w.run(ctx)
	}, p.changed)
}

// tryNow wakes the worker of a sink that waits after a failure.
func (s *sink) tryNow() {
	s.state.tryNow()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
