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

// sink is a sink of a pipeline, at one address.
type sink struct {
	spec    v1alpha1.PipelineSink
	prefix  string
	ledger  *ledger.Ledger
	account *account
	numbers sinkNumbers
	wake    chan struct{}
	// writer writes what the ledger has in memory, worker tells the sink of it; nil while nothing is sent.
	writer, worker *task
}

// openSink reads what a sink knows. What the status tells of it goes on from there, unless it tells of one at another address.
func (c *pipelines) openSink(ctx context.Context, p *pipe, of *v1alpha1.SyncPipeline, spec *v1alpha1.PipelineSink) (*sink, error) {
	s := &sink{
		spec: *spec.DeepCopy(), prefix: prefixOf(of, spec), account: newAccount(spec.Name), numbers: numbersOf(of.Name, spec.Name),
		wake: make(chan struct{}, 1),
	}
	if !p.hasSink(spec.Name) {
		s.account.restore(of)
	}
	var err error
	s.ledger, err = ledger.Open(ctx, ledger.Config{
		Table: c.rows, Prefix: s.prefix, Clock: c.config.Clock,
		Debounce: p.debounce, MaxItems: p.maxItems, MaxWait: p.maxWait,
	})
	if err != nil {
		return nil, fmt.Errorf("read what sink %s knows: %w", spec.Name, err)
	}
	s.writer = start(ctx, s.ledger.Run, func() {})
	return s, nil
}

// edit has a sink go on as its spec says now. What it has refused it may take then.
func (s *sink) edit(spec *v1alpha1.PipelineSink) {
	if equality.Semantic.DeepEqual(s.spec, *spec) {
		return
	}
	s.worker.stop()
	s.spec = *spec.DeepCopy()
	s.account.renewed()
	s.ledger.Expedite()
}

// engage has the worker of a sink go on, if it does not.
func (c *pipelines) engage(ctx context.Context, p *pipe, s *sink) {
	if s.worker.goesOn() {
		return
	}
	to, err := c.connect(p, &s.spec)
	if err != nil {
		// Validation refuses what cannot be used: another version of this server has written it.
		s.account.failed(err.Error(), c.config.Clock.Now())
		return
	}
	w := &worker{
		ledger: s.ledger, to: to, retry: s.spec.Retry, account: s.account, numbers: s.numbers, clock: c.config.Clock, wake: s.wake,
		changed: p.changed,
	}
	s.worker = start(ctx, func(ctx context.Context) {
		defer to.Close()
		var group wait.Group
		defer group.Wait()
		if of, ok := to.(aftermath); ok {
			group.StartWithContext(ctx, func(ctx context.Context) { w.lookBack(ctx, of) })
		}
		w.run(ctx)
	}, p.changed)
}

// tryNow ends the pause of a sink that has failed.
func (s *sink) tryNow() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
