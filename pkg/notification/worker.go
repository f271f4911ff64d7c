// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// storeInterval is the least time between two writes of a sink's ledger, unless a message is to be sent.
	storeInterval = 500 * time.Millisecond
	// storeTimeout bounds a write. When the term ends meanwhile, controller.DrainTimeout does.
	storeTimeout = 10 * time.Second
	// A message that was not delivered is sent again after minRetry. The time doubles with each attempt, up to maxRetry; a longer Retry-After of
	// the receiver takes precedence.
	minRetry, maxRetry = time.Second, 5 * time.Minute
	// threadAge is how long a thread is continued after its last message.
	threadAge = 30 * 24 * time.Hour
	// maxThreads is the number of threads of a sink that are continued.
	maxThreads = 1000
	// maxTitle is the length of status.lastMessage, in bytes.
	maxTitle = 256
)

// worker stores and sends what a queue has collected.
type worker struct {
	queue  *queue
	ledger *ledger.Ledger
	clock  clock.WithTicker
	// reminders returns the settings of reminders.
	reminders func() v1alpha1.Reminders
	// changed is called when the status has changed.
	changed func()
	numbers numbers
	status  *status

	// current returns the version of the sink to send by; nil while there is none. used is that of this step.
	current func() *version
	used    *version
	// stored is when the ledger was last written, and sent are the times of the messages of the last minute.
	stored time.Time
	sent   []time.Time
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.pause(ctx, w.step(ctx))
	}
	w.use(nil)
}

// use has messages sent by a version of the sink, and closes the receiver of the one before.
func (w *worker) use(next *version) {
	if w.used != nil && w.used != next {
		w.used.receiver.Close()
	}
	w.used = next
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
	w.use(w.current())
	w.queue.remind(w.reminders())
	if err := w.store(ctx); err != nil {
		return w.internalFailure(ctx, err)
	}
	due := w.due()
	if w.status.setDue(due) {
		w.changed()
	}
	if due.IsZero() || due.After(w.clock.Now()) {
		return earliest(due, w.queue.nextReminder(w.reminders()))
	}
	if err := w.send(ctx); err != nil {
		return w.internalFailure(ctx, err)
	}
	return w.clock.Now()
}

// store writes what has changed to the ledger.
func (w *worker) store(ctx context.Context) error {
	writes := w.queue.take()
	if writes.IsEmpty() {
		return nil
	}
	ctx, stop := controller.Draining(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	w.stored = w.clock.Now()
	if err := w.ledger.Write(ctx, writes); err != nil {
		w.queue.restore(writes)
		return err
	}
	failpoint.Reach("notification-stored")
	w.status.setFailure("")
	w.changed()
	return nil
}

// internalFailure records a failure of the server, such as one of the store. It returns when the next step is.
func (w *worker) internalFailure(ctx context.Context, err error) time.Time {
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to send notifications, retrying", "retryAfter", minRetry)
		if w.status.setFailure("The server cannot store or prepare notifications, and retries; its log has the cause") {
			w.changed()
		}
	}
	return w.clock.Now().Add(minRetry)
}

// due returns when the next message is to be sent; zero if there is nothing to send, or sending is held.
func (w *worker) due() time.Time {
	first, pending := w.queue.waiting()
	if !pending || w.used == nil || !w.status.hold().IsZero() {
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

// send sends the message that is being sent, or the pending notifications as a new one, once that is stored.
func (w *worker) send(ctx context.Context) error {
	sending := w.queue.begin()
	if err := w.store(ctx); err != nil {
		return err
	}
	failpoint.Reach("notification-sending")
	m, err := w.used.compose(ctx, sending)
	if err != nil {
		return fmt.Errorf("make the message: %w", err)
	}
	w.status.setFailure("")
	if m == nil {
		return w.settle(ctx, outcome{})
	}
	result := w.deliver(ctx, m)
	if ctx.Err() != nil && result.Outcome == delivery.Retry {
		return nil // The process stops leading.
	}
	switch result.Outcome {
	case delivery.Retry:
		failures := w.status.fail(result.Message, result.Reason)
		w.status.retryAt(w.clock.Now().Add(backoff(failures, result.RetryAfter)))
		w.changed()
		return nil
	case delivery.Rejected:
		w.status.reject(result.Message)
		return w.settle(ctx, outcome{rejected: true})
	}
	w.status.succeed()
	return w.settle(ctx, outcome{
		delivered: m.Total(), title: summary.Cut(titleOf(m), maxTitle), thread: m.Thread, reference: result.Thread,
	})
}

// titleOf returns the title of a message as the status of the sink shows it. It only counts Changes: more users may read the sink than the changed
// objects. A title by a template can have anything in it.
func titleOf(m *message.Message) string {
	isChange := func(n message.Notification) bool {
		return n.Event == v1alpha1.NotifyChange || n.Event == v1alpha1.NotifyBypass
	}
	if m.Title == "" && !slices.ContainsFunc(m.Notifications, isChange) {
		return message.Title(m)
	}
	var counted []string
	for _, c := range m.Counted() {
		counted = append(counted, c.Text)
	}
	return strings.Join(counted, ", ")
}

// deliver makes an attempt to deliver a message.
func (w *worker) deliver(ctx context.Context, m *message.Message) delivery.Result {
	begun := w.clock.Now()
	ctx, span := tracing.Start(ctx, "notification.deliver", trace.WithAttributes(
		attribute.String("slipstream.sink", w.numbers.String()), attribute.Int("slipstream.notifications", m.Total()),
	))
	defer span.End()
	result := w.used.receiver.Deliver(ctx, m, w.queue.thread(m.Thread))
	span.SetAttributes(attribute.String("slipstream.outcome", string(result.Outcome)))
	w.sent = append(w.sent, begun)
	w.numbers.attempted(result.Outcome, m.Total(), w.clock.Since(begun))
	failpoint.Reach("notification-delivered")
	klog.FromContext(ctx).Info("Attempted to deliver a message", "notifications", m.Total(), "outcome", result.Outcome, "response", result.Message)
	return result
}

// settle ends the message that was being sent.
func (w *worker) settle(ctx context.Context, o outcome) error {
	w.queue.settle(o)
	if err := w.store(ctx); err != nil {
		return err
	}
	failpoint.Reach("notification-settled")
	return nil
}

// backoff returns the time until the next attempt after a number of failures, at least that which the receiver requested.
func backoff(failures int, requested time.Duration) time.Duration {
	delay := maxRetry
	if shift := failures - 1; shift < 16 {
		delay = min(minRetry<<max(shift, 0), maxRetry)
	}
	delay += time.Duration(rand.Float64() * float64(delay) / 4) //nolint:gosec // jitter needs no secrecy
	return max(delay, requested)
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
