// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// storeInterval is the least time between two writes of a sink's ledger, unless a message is to be sent.
	storeInterval = 500 * time.Millisecond
	// storeTimeout bounds a write.
	storeTimeout = 10 * time.Second
	// A message that was not delivered is sent again after minRetry. The time doubles with each attempt, up to maxRetry; a longer time that the
	// receiver wants takes precedence, up to maxRetryAfter.
	minRetry, maxRetry, maxRetryAfter = time.Second, 5 * time.Minute, time.Hour
	// threadAge is how long a thread is continued after its last message.
	threadAge = 30 * 24 * time.Hour
	// maxTitle is the length of status.lastMessage, in bytes.
	maxTitle = 256
)

// worker stores and sends what a queue has collected.
type worker struct {
	queue  *queue
	ledger *ledger.Ledger
	clock  clock.WithTicker
	// compose makes the message of what is to be sent. It returns nil if nothing may be sent any more.
	compose func(ctx context.Context, sending *ledger.Sending) (*message.Message, error)
	// reminders returns the settings of reminders.
	reminders func() v1alpha1.Reminders
	// changed is called when the status has changed.
	changed func()
	numbers numbers
	status  *status

	// current returns the receiver of the current spec; nil while it cannot be used. connected is the one in use.
	current   func() delivery.Receiver
	connected delivery.Receiver
	// stored is when the ledger was last written, and sent are the times of the messages of the last minute.
	stored time.Time
	sent   []time.Time
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.pause(ctx, w.step(ctx))
	}
	w.connect(nil)
}

// connect has messages sent to a receiver, and closes the one before.
func (w *worker) connect(receiver delivery.Receiver) {
	if w.connected != nil && w.connected != receiver {
		w.connected.Close()
	}
	w.connected = receiver
}

// pause waits until a time, or until the worker is woken. The zero time means that only that ends it.
func (w *worker) pause(ctx context.Context, until time.Time) {
	var over <-chan time.Time
	if !until.IsZero() {
		timer := w.clock.NewTimer(max(until.Sub(w.clock.Now()), time.Millisecond))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-w.queue.wake:
	}
}

// step stores what was collected, adds reminders that are due, and sends a message if one is. It returns when the next step is.
func (w *worker) step(ctx context.Context) time.Time {
	if next := w.stored.Add(storeInterval); w.clock.Now().Before(next) {
		return next
	}
	w.connect(w.current())
	w.queue.remind(w.reminders())
	if err := w.store(ctx, w.queue.take()); err != nil {
		return w.internalFailure(ctx, err)
	}
	due := w.due()
	if due.IsZero() || due.After(w.clock.Now()) {
		return earliest(due, w.queue.nextReminder(w.reminders()))
	}
	if err := w.send(ctx); err != nil {
		return w.internalFailure(ctx, err)
	}
	return w.clock.Now()
}

// store writes the ledger.
func (w *worker) store(ctx context.Context, writes *ledger.Writes) error {
	if writes.IsEmpty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	w.stored = w.clock.Now()
	if err := w.ledger.Write(ctx, writes); err != nil {
		w.queue.restore(writes)
		return err
	}
	failpoint.Reach("notification-stored")
	w.changed()
	return nil
}

// internalFailure records a failure of the server, such as one of the store. It returns when the next step is.
func (w *worker) internalFailure(ctx context.Context, err error) time.Time {
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to send notifications, retrying", "retryAfter", minRetry)
		w.status.fail(err.Error(), "", w.clock.Now().Add(minRetry))
		w.changed()
	}
	return w.clock.Now().Add(minRetry)
}

// due returns when the next message is to be sent; zero if there is nothing to send, or sending is held.
func (w *worker) due() time.Time {
	first, pending := w.queue.waiting()
	if !pending || w.connected == nil || !w.status.hold().IsZero() {
		return time.Time{}
	}
	due := first.Add(w.queue.window())
	if w.queue.isSendingAny() {
		due = w.status.nextAttempt()
	}
	due = latest(due, w.slot())
	return w.queue.windowAt(latest(due, w.clock.Now()))
}

// slot returns when maxPerMinute allows the next message.
func (w *worker) slot() time.Time {
	now, most := w.clock.Now(), w.queue.maxPerMinute()
	w.sent = slices.DeleteFunc(w.sent, func(at time.Time) bool { return !at.Add(time.Minute).After(now) })
	if len(w.sent) < most {
		return time.Time{}
	}
	return w.sent[len(w.sent)-most].Add(time.Minute)
}

// send sends the message that is being sent, or the pending notifications as a new one.
func (w *worker) send(ctx context.Context) error {
	sending, writes := w.queue.begin()
	if writes != nil {
		if err := w.store(ctx, writes); err != nil {
			return err
		}
	}
	failpoint.Reach("notification-sending")
	m, err := w.compose(ctx, sending)
	if err != nil {
		return fmt.Errorf("make the message: %w", err)
	}
	if m == nil {
		return w.store(ctx, w.queue.settle(ledger.State{}, nil, ""))
	}
	begun := w.clock.Now()
	result := w.connected.Deliver(ctx, m, w.queue.thread(m.Thread))
	if ctx.Err() != nil && result.Outcome == delivery.Retry {
		return nil // The process stops leading.
	}
	w.sent = append(w.sent, begun)
	w.numbers.attempted(result.Outcome, m.Total(), w.clock.Since(begun))
	failpoint.Reach("notification-delivered")
	klog.FromContext(ctx).Info("Sent a message", "sink", w.numbers.name(), "notifications", m.Total(), "outcome", result.Outcome,
		"answer", result.Message)
	if result.Outcome == delivery.Retry {
		failures := w.status.fail(result.Message, result.Reason, time.Time{})
		w.status.retryAt(w.clock.Now().Add(backoff(failures, result.RetryAfter)))
		w.changed()
		return nil
	}
	w.settled(m, result)
	writes = w.queue.settle(progressOf(m, result, w.clock.Now()), m, result.Thread)
	if err := w.store(ctx, writes); err != nil {
		return err
	}
	failpoint.Reach("notification-settled")
	return nil
}

// settled records the result of a message that is not sent again.
func (w *worker) settled(m *message.Message, result delivery.Result) {
	if result.Outcome == delivery.Rejected {
		w.status.reject(result.Message)
		return
	}
	w.status.succeed()
}

// progressOf returns what a message adds to the counters.
func progressOf(m *message.Message, result delivery.Result, now time.Time) ledger.State {
	if result.Outcome == delivery.Rejected {
		return ledger.State{Rejected: 1}
	}
	return ledger.State{Messages: 1, Notifications: int64(m.Total()), Delivered: now, Title: summary.Cut(message.Title(m), maxTitle)}
}

// backoff returns the time until the next attempt after a number of failures.
func backoff(failures int, wanted time.Duration) time.Duration {
	delay := maxRetry
	if shift := failures - 1; shift < 16 {
		delay = min(minRetry<<max(shift, 0), maxRetry)
	}
	delay += time.Duration(rand.Float64() * float64(delay) / 4) //nolint:gosec // jitter needs no secrecy
	return max(delay, min(wanted, maxRetryAfter))
}

// hold is why a sink sends nothing. The zero value means that it sends.
type hold = conditions.Reason

// earliest returns the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
