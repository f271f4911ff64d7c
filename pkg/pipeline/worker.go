// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// recordTimeout bounds recording the result of a part of a batch. When the term ends meanwhile, controller.DrainTimeout does.
const recordTimeout = 10 * time.Second

// worker delivers the changes of a ledger to one sink.
type worker struct {
	ledger  *ledger.Ledger
	to      delivery.Sink
	retry   v1alpha1.PipelineRetry
	state   *sinkStatus
	numbers sinkNumbers
	clock   clock.WithTicker
	// wake ends a pause.
	wake <-chan struct{}
	// changed is called when the status has changed.
	changed func()
	// internalFailures counts consecutive failures of our own, such as those of the store.
	internalFailures int
}

// run delivers batches until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.pause(ctx, w.deliverNext(ctx))
	}
}

// pause is how long a worker waits before the next batch. The zero value means that it does not wait.
type pause struct {
	wait bool
	// until is the end of the pause; zero means that only wake ends it.
	until time.Time
}

// pause waits until the pause is over, the worker is woken, or ctx ends.
func (w *worker) pause(ctx context.Context, p pause) {
	if !p.wait {
		return
	}
	var over <-chan time.Time
	if !p.until.IsZero() {
		timer := w.clock.NewTimer(p.until.Sub(w.clock.Now()))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-w.wake:
	}
	if again := w.state.startAttempt(); again && ctx.Err() == nil {
		w.numbers.retried()
	}
	w.changed()
}

// deliverNext waits for the next batch and delivers it. Changes that the sink has not accepted are in the next batch again.
func (w *worker) deliverNext(ctx context.Context) pause {
	if err := w.catchUp(ctx); err != nil {
		return w.internalFailure(ctx, err)
	}
	batch, err := w.ledger.Next(ctx)
	if err != nil {
		return w.internalFailure(ctx, err)
	}
	w.consumeWake()
	begun := w.clock.Now()
	last := format.Result{Outcome: format.Delivered}
	ctx, span := w.startSpan(ctx, batch)
	err = w.to.Deliver(ctx, batch, func(keys []item.Key, result format.Result) error {
		last = result
		return w.record(ctx, batch.ID, keys, result)
	})
	span.SetAttributes(attribute.String("slipstream.outcome", string(last.Outcome)))
	tracing.End(span, err)
	took := w.clock.Since(begun)
	w.numbers.took(took)
	if err != nil {
		return w.internalFailure(ctx, err)
	}
	if last.Outcome != format.Waiting {
		klog.FromContext(ctx).Info("Sent a batch", "pipeline", w.numbers.pipeline, "sink", w.numbers.sink, "upserts", len(batch.Upserts),
			"deletes", len(batch.Deletes), "outcome", last.Outcome, "answer", last.Message, "took", took.Round(time.Millisecond).String())
	}
	w.internalFailures = 0
	w.changed()
	switch last.Outcome {
	case format.Retry:
		return w.failed(last.Message, last.RetryAfter)
	case format.Waiting: // This is not a failure.
		w.state.recordBusy(last.Message)
		return pause{wait: true, until: w.clock.Now().Add(last.RetryAfter)}
	}
	return pause{}
}

// catchUp persists results that could not be stored before, and then clears the failure. It does not wait for the success of the next
// batch, because there may be none.
func (w *worker) catchUp(ctx context.Context) error {
	if w.internalFailures == 0 {
		return nil
	}
	if err := w.ledger.Flush(ctx); err != nil {
		return fmt.Errorf("persist the sink ledger: %w", err)
	}
	w.state.reset()
	w.changed()
	return nil
}

// consumeWake consumes a pending wake-up, because this is the attempt that it requests.
func (w *worker) consumeWake() {
	select {
	case <-w.wake:
	default:
	}
}

// record records the result of a part of a batch, also when ctx has ended since it was sent.
func (w *worker) record(ctx context.Context, id string, keys []item.Key, result format.Result) error {
	ctx, stop := controller.Draining(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	now := w.clock.Now()
	switch result.Outcome {
	case format.Delivered:
		if err := w.ledger.Delivered(ctx, id, keys); err != nil {
			return err
		}
		w.state.recordDelivered(len(keys), w.ledger.Counts().Rejected, result.Message, now)
		w.numbers.sent(len(keys))
	case format.Rejected:
		// The message comes first, so that no status counts rejected objects without the reason.
		w.state.recordRejected(result.Message, now)
		if err := w.ledger.Rejected(ctx, id, keys); err != nil {
			return err
		}
	}
	w.numbers.counted(result.Outcome)
	return nil
}

// internalFailure records a failure of our own, such as one of the store. The sink is retried without limit. Results that could not be
// stored are stored by catchUp; only those of a process that ends before are lost, and their changes sent again.
func (w *worker) internalFailure(ctx context.Context, err error) pause {
	if ctx.Err() != nil {
		return pause{}
	}
	klog.FromContext(ctx).Error(err, "Failed to deliver to sink, retrying",
		"pipeline", w.numbers.pipeline, "sink", w.numbers.sink)
	w.internalFailures++
	w.state.recordFailure(err.Error(), w.clock.Now())
	return w.retryAfter(w.internalFailures, 0)
}

// failed records a failed attempt, and returns the pause until the next one.
func (w *worker) failed(message string, after time.Duration) pause {
	failures := w.state.recordFailure(message, w.clock.Now())
	if most := int(*w.retry.MaxAttempts); most == 0 || failures < most {
		return w.retryAfter(failures, after)
	}
	defer w.changed()
	w.state.scheduleRetry(time.Time{})
	return pause{wait: true}
}

// retryAfter returns the pause after a number of consecutive failures.
func (w *worker) retryAfter(failures int, after time.Duration) pause {
	defer w.changed()
	until := w.clock.Now().Add(delivery.NextAttempt(w.retry, failures, after, rand.Float64))
	w.state.scheduleRetry(until)
	return pause{wait: true, until: until}
}
