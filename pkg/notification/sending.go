// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
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

// begin returns the message that is being sent. If there is none, the pending notifications become one, and writes are to be stored before it is
// sent.
func (q *queue) begin() (sending *ledger.Sending, writes *ledger.Writes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Sending != nil {
		return q.Sending, nil
	}
	q.State.Sent++
	q.Sending = &ledger.Sending{ID: idOf(q.uid, "message", q.State.Sent), Time: q.now(), Digest: q.Pending}
	q.Pending = ledger.Digest{}
	pending := q.Pending
	return q.Sending, &ledger.Writes{State: q.copyOfState(), Pending: &pending, Sending: q.Sending}
}

// settle ends the message that is being sent, and adds to the counters. It returns what is to be stored. m is nil if nothing was sent, and
// reference is what the receiver calls the message.
func (q *queue) settle(add ledger.State, m *message.Message, reference string) *ledger.Writes {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	state := &q.State
	state.Messages += add.Messages
	state.Notifications += add.Notifications
	state.Rejected += add.Rejected
	if !add.Delivered.IsZero() {
		state.Delivered, state.Title = add.Delivered, add.Title
	}
	w := &ledger.Writes{Sent: true, Found: q.markSent(now)}
	if m != nil && m.Thread != "" && reference != "" {
		thread := q.continueThread(m.Thread, reference, now)
		w.Threads = append(w.Threads, *thread)
	}
	w.Expired = q.expireThreads(now)
	q.Sending = nil
	w.State = q.copyOfState()
	return w
}

// markSent notes of the findings in the message when they were first sent.
func (q *queue) markSent(now time.Time) []ledger.Found {
	var sent []ledger.Found
	for i := range q.Sending.Listed {
		if f := q.Found[q.Sending.Listed[i].Notification.DedupeKey]; f != nil && f.First.IsZero() {
			f.First = now
			sent = append(sent, *f)
		}
	}
	if len(q.Sending.Listed) == q.Sending.Total() {
		return sent
	}
	// Findings that the message only counts were sent, too.
	pending := sets.New[string]()
	for i := range q.Pending.Listed {
		pending.Insert(q.Pending.Listed[i].Notification.DedupeKey)
	}
	for key, f := range q.Found {
		if f.First.IsZero() && !pending.Has(key) {
			f.First = now
			sent = append(sent, *f)
		}
	}
	return sent
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

// continueThread notes the use of a thread. The receiver returns the reference of its first message, or of a new thread.
func (q *queue) continueThread(key, reference string, now time.Time) *ledger.Thread {
	q.Threads[key] = &ledger.Thread{Key: key, Reference: reference, Receiver: q.receiver, Used: now}
	return q.Threads[key]
}

// expireThreads removes threads that were not used for long, and returns their keys.
func (q *queue) expireThreads(now time.Time) []string {
	var expired []string
	for key, thread := range q.Threads {
		if now.Sub(thread.Used) > threadAge {
			delete(q.Threads, key)
			expired = append(expired, key)
		}
	}
	return expired
}

// remind adds a reminder of each lasting finding that is due for one.
func (q *queue) remind(settings v1alpha1.Reminders) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil || q.selection.spec.Suspend {
		return
	}
	for key, f := range q.Found {
		last := q.current[key]
		due := reminderAt(f, settings)
		if last == nil || due.IsZero() || due.After(q.now()) || q.isPending(key) || q.isSending(key) {
			continue
		}
		// Reminders that became due while no process ran are combined.
		for !due.IsZero() && !due.After(q.now()) {
			f.Reminders++
			due = reminderAt(f, settings)
		}
		n := *last
		n.Reminder = f.Reminders
		q.changed.found.Insert(key)
		q.add(ledger.Entry{Notification: n})
	}
}

// nextReminder returns when the next reminder is due; zero if none is.
func (q *queue) nextReminder(settings v1alpha1.Reminders) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next time.Time
	for key, f := range q.Found {
		if q.current[key] != nil && !q.isPending(key) && !q.isSending(key) {
			next = earliest(next, reminderAt(f, settings))
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
	ledger.State
	pending int
	// first is when the first pending notification was collected, and window how long they are.
	first  time.Time
	window time.Duration
}

// progress returns what the status of the sink shows.
func (q *queue) progress() progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := progress{State: q.State, pending: q.Pending.Total(), first: q.Pending.First}
	if q.Sending != nil {
		p.pending += q.Sending.Total()
	}
	if q.selection != nil {
		p.window = q.selection.spec.DigestWindow.Duration
	}
	return p
}

// nextAttempt returns when the next message is sent, unless windows or maxPerMinute delay it.
func (p progress) nextAttempt(last attempt, now time.Time) time.Time {
	if !last.next.IsZero() {
		return last.next
	}
	return latest(p.first.Add(p.window), now)
}
