// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// noteTimeout bounds the writing of what became of a part of a batch.
const noteTimeout = 10 * time.Second

// worker tells one sink what its ledger says is due.
type worker struct {
	ledger  *ledger.Ledger
	to      delivery.Sink
	retry   v1alpha1.PipelineRetry
	account *account
	numbers sinkNumbers
	clock   clock.WithTicker
	// wake ends a pause.
	wake <-chan struct{}
	// changed is called when there is something new to show.
	changed func()
	// troubles is how often in a row something of our own has failed.
	troubles int
}

// run tells the sink until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.pause(ctx, w.tellNext(ctx))
	}
}

// pause is how long a worker waits: not at all, for a while, or until it is woken.
type pause struct {
	atAll, rests bool
	until        time.Time
}

func (w *worker) pause(ctx context.Context, p pause) {
	if !p.atAll {
		return
	}
	var over <-chan time.Time
	if !p.rests {
		timer := w.clock.NewTimer(p.until.Sub(w.clock.Now()))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-w.wake:
	}
	if again := w.account.begins(); again && ctx.Err() == nil {
		w.numbers.retried()
	}
	w.changed()
}

// tellNext waits for the next batch and tells the sink of it. What the sink has not taken then comes with the same batch again.
func (w *worker) tellNext(ctx context.Context) pause {
	if err := w.catchUp(ctx); err != nil {
		return w.troubled(ctx, err)
	}
	batch, err := w.ledger.Next(ctx)
	if err != nil {
		return w.troubled(ctx, err)
	}
	w.tried()
	begun := w.clock.Now()
	last := format.Result{Outcome: format.Delivered}
	err = w.to.Deliver(ctx, format.Batch(batch), func(keys []item.Key, result format.Result) error {
		last = result
		return w.take(ctx, batch.ID, keys, result)
	})
	took := w.clock.Since(begun)
	w.numbers.took(took)
	if err != nil {
		return w.troubled(ctx, err)
	}
	if last.Outcome != format.Waiting {
		klog.FromContext(ctx).Info("Sent a batch", "pipeline", w.numbers.pipeline, "sink", w.numbers.sink, "upserts", len(batch.Upserts),
			"deletes", len(batch.Deletes), "outcome", last.Outcome, "answer", last.Message, "took", took.Round(time.Millisecond).String())
	}
	w.troubles = 0
	w.changed()
	switch last.Outcome {
	case format.Retry:
		return w.failed(last.Message, last.RetryAfter)
	case format.Waiting: // Nothing has failed.
		w.account.waitsFor(last.Message)
		return pause{atAll: true, until: w.clock.Now().Add(last.RetryAfter)}
	}
	return pause{}
}

// catchUp makes durable what could not be kept before. That is not shown any longer then: nothing may be left to be sent.
func (w *worker) catchUp(ctx context.Context) error {
	if w.troubles == 0 {
		return nil
	}
	if err := w.ledger.Flush(ctx); err != nil {
		return fmt.Errorf("keep what the sink has been told: %w", err)
	}
	w.account.renewed()
	w.changed()
	return nil
}

// tried says that whoever has asked for another attempt has got it.
func (w *worker) tried() {
	select {
	case <-w.wake:
	default:
	}
}

// take notes what became of a part of a batch, also when ctx has ended since it was sent.
func (w *worker) take(ctx context.Context, id string, keys []item.Key, result format.Result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	now := w.clock.Now()
	switch result.Outcome {
	case format.Delivered:
		if err := w.ledger.Delivered(ctx, id, keys); err != nil {
			return err
		}
		w.account.delivered(len(keys), w.ledger.Counts().Rejected, result.Message, now)
		w.numbers.sent(len(keys))
	case format.Rejected:
		if err := w.ledger.Rejected(ctx, id, keys); err != nil {
			return err
		}
		w.account.rejected(result.Message, now)
	}
	w.numbers.judged(result.Outcome)
	return nil
}

// troubled notes that something of our own has failed, such as the store, for which the sink does not rest. What was delivered and could
// not be noted is sent again.
func (w *worker) troubled(ctx context.Context, err error) pause {
	if ctx.Err() != nil {
		return pause{}
	}
	klog.FromContext(ctx).Error(err, "What a sink is to be told, or was told, cannot be kept, trying again",
		"pipeline", w.numbers.pipeline, "sink", w.numbers.sink)
	w.troubles++
	w.account.failed(err.Error(), w.clock.Now())
	return w.again(w.troubles, 0)
}

// failed notes that the sink could not be told, and says when it is tried again.
func (w *worker) failed(why string, after time.Duration) pause {
	failures := w.account.failed(why, w.clock.Now())
	if most := int(*w.retry.MaxAttempts); most == 0 || failures < most {
		return w.again(failures, after)
	}
	defer w.changed()
	w.account.waits(time.Time{})
	return pause{atAll: true, rests: true}
}

// again says when a sink is tried again that could not be told so many times.
func (w *worker) again(failures int, after time.Duration) pause {
	defer w.changed()
	until := w.clock.Now().Add(delivery.NextAttempt(w.retry, failures, after, rand.Float64))
	w.account.waits(until)
	return pause{atAll: true, until: until}
}
