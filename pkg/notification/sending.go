// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
)

// waiting returns when the first notification was collected that was not delivered; false if there is none.
func (q *queue) waiting() (first time.Time, pending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Sending != nil {
		return q.Sending.First, true
	}
	return q.Pending.First, !q.Pending.IsEmpty()
}

// isSendingAny reports whether a message is being sent.
func (q *queue) isSendingAny() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Sending != nil
}

// window returns how long notifications are collected.
func (q *queue) window() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.selection.spec.DigestWindow.Duration
}

func (q *queue) maxPerMinute() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(*q.selection.spec.MaxPerMinute)
}

// windowAt returns when messages may be sent from a time on. Zero means that no window ever allows it.
func (q *queue) windowAt(at time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	decision := q.selection.windows.At(at)
	if decision.Allowed {
		return at
	}
	return decision.Next
}

// windowMessage returns for which window messages wait; empty if they do not.
func (q *queue) windowMessage(now time.Time) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil {
		return ""
	}
	return q.selection.windows.At(now).Message(now)
}

// begin returns the message that is being sent. If there is none, the pending notifications become one, which the caller must store before it is
// sent.
func (q *queue) begin() *ledger.Sending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Sending == nil {
		q.State.Sent++
		q.Sending = &ledger.Sending{ID: idOf(q.uid, "message", q.State.Sent), Time: q.now(), Scope: q.State.Scope, Digest: q.Pending}
		q.Pending = ledger.Digest{}
		q.changed.state, q.changed.pending, q.changed.sending = true, true, true
	}
	return q.Sending
}

// outcome is how the message that was being sent has ended.
type outcome struct {
	// delivered is the number of notifications that the receiver has accepted, title the title of the message. rejected means that the receiver
	// rejected the message. Neither is set if nothing was sent.
	delivered int
	title     string
	rejected  bool
	// thread identifies the subject, empty if there are several, and reference is what the receiver calls the message.
	thread, reference string
}

// settle ends the message that is being sent.
func (q *queue) settle(o outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	switch {
	case o.rejected:
		q.State.Rejected++
	case o.delivered > 0:
		q.State.Messages++
		q.State.Notifications += int64(o.delivered)
		q.State.Delivered, q.State.Title = now, o.title
	}
	q.markSent(now)
	if o.thread != "" && o.reference != "" {
		q.Threads[o.thread] = &ledger.Thread{Key: o.thread, Reference: o.reference, Receiver: q.receiver, Used: now}
		q.changed.threads.Insert(o.thread)
		q.changed.expired.Delete(o.thread)
	}
	q.expireThreads(now)
	q.Sending = nil
	q.changed.state, q.changed.sending = true, true
}

// markSent notes of the findings in the message when they were first sent.
func (q *queue) markSent(now time.Time) {
	mark := func(key string) {
		if f := q.Found[key]; f != nil && f.First.IsZero() {
			f.First = now
			q.changed.found.Insert(key)
		}
	}
	for i := range q.Sending.Listed {
		mark(q.Sending.Listed[i].Notification.DedupeKey)
	}
	if len(q.Sending.Listed) == q.Sending.Total() {
		return
	}
	// Findings that the message only counts were sent, too.
	pending := sets.New[string]()
	for i := range q.Pending.Listed {
		pending.Insert(q.Pending.Listed[i].Notification.DedupeKey)
	}
	for key := range q.Found {
		if !pending.Has(key) {
			mark(key)
		}
	}
}

func (q *queue) isPending(key string) bool {
	return slices.ContainsFunc(q.Pending.Listed, func(e ledger.Entry) bool { return e.Notification.DedupeKey == key })
}

// thread returns the reference of a thread, empty if it has none yet.
func (q *queue) thread(key string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if thread := q.Threads[key]; thread != nil && thread.Receiver == q.receiver {
		return thread.Reference
	}
	return ""
}

// expireThreads removes threads that were not used for long, and beyond maxThreads the one that was used least recently.
func (q *queue) expireThreads(now time.Time) {
	oldest := ""
	for key, thread := range q.Threads {
		if now.Sub(thread.Used) > threadAge {
			q.expireThread(key)
		} else if oldest == "" || thread.Used.Before(q.Threads[oldest].Used) {
			oldest = key
		}
	}
	if len(q.Threads) > maxThreads {
		q.expireThread(oldest)
	}
}

func (q *queue) expireThread(key string) {
	delete(q.Threads, key)
	q.changed.threads.Delete(key)
	q.changed.expired.Insert(key)
}

// remind adds a reminder of each lasting finding that is due for one.
func (q *queue) remind(settings v1alpha1.Reminders) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil || q.selection.spec.Suspend {
		return
	}
	for key, last := range q.current {
		f := q.Found[key]
		due := reminderAt(f, settings)
		if due.IsZero() || due.After(q.now()) || q.isPending(key) || q.isSending(key) {
			continue
		}
		// Reminders that became due while no process ran are combined.
		for !due.IsZero() && !due.After(q.now()) {
			f.Reminders++
			due = reminderAt(f, settings)
		}
		n := last.Notification
		n.Reminder = f.Reminders
		q.changed.found.Insert(key)
		q.add(ledger.Entry{Notification: n, SourceNamespace: last.SourceNamespace})
	}
}

// nextReminder returns when the next reminder is due; zero if none is.
func (q *queue) nextReminder(settings v1alpha1.Reminders) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next time.Time
	if q.selection == nil || q.selection.spec.Suspend {
		return next
	}
	for key := range q.current {
		if !q.isPending(key) && !q.isSending(key) {
			next = earliest(next, reminderAt(q.Found[key], settings))
		}
	}
	return next
}

// reminderAt returns when the next reminder of a finding is due. Zero means never: it does not last, was not sent yet, or has had all.
func reminderAt(f *ledger.Found, settings v1alpha1.Reminders) time.Time {
	if !f.Lasting || f.First.IsZero() {
		return time.Time{}
	}
	if f.Reminders < len(settings.After) {
		return f.First.Add(settings.After[f.Reminders].Duration)
	}
	every := settings.Every
	if every == nil || every.Duration <= 0 {
		return time.Time{}
	}
	base := f.First
	if n := len(settings.After); n > 0 {
		base = base.Add(settings.After[n-1].Duration)
	}
	return base.Add(time.Duration(f.Reminders-len(settings.After)+1) * every.Duration)
}

// progress is what the status of a sink shows.
type progress struct {
	state   ledger.State
	pending int
}

// progress returns what the status of the sink shows.
func (q *queue) progress() progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := progress{state: q.State, pending: q.Pending.Total()}
	if q.Sending != nil {
		p.pending += q.Sending.Total()
	}
	return p
}
