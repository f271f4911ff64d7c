// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"time"
)

// Submit finds the author of an event and calls deliver with it exactly once, on this or another goroutine, unless ctx or
// the context of Run ends before. Events of one object are delivered in the order in which they were submitted, and no
// event waits for facts about another object. Submit returns an error, which is that of ctx, if it did not accept the
// event.
//
// deliver may block. Submit blocks while it does, or while too many events are pending.
func (j *Joiner) Submit(ctx context.Context, event Event, deliver func(context.Context, Author)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &pendingEvent{
		event: &event, arrived: time.Now(),
		deliver: func(author Author) { deliver(ctx, author) }, ended: func() bool { return ctx.Err() != nil },
	}
	if j.isAuditUsed() { // Looking for the writer of a large object would hold up others under the lock.
		w.writing = writingOf(w.event, w.arrived)
	}
	r, evidence := j.begin(w)
	if evidence != nil {
		if v := evidence.decide(); !v.until.After(w.arrived) {
			j.deliver(w, v)
			j.finish(r)
			return nil
		}
	}
	return j.enqueue(ctx, r, w)
}

// isAuditUsed reports whether the API servers' audit sends facts, or did lately.
func (j *Joiner) isAuditUsed() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.expected.sources.audit.used(time.Now())
}

// begin records an event. It returns the evidence about it and the queue that the caller holds, or nil if events of the
// same object have to be delivered first.
func (j *Joiner) begin(w *pendingEvent) (*objectQueue, *evidence) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	w.object = objectOf(w.event.Resource.GroupResource(), w.event.Object)
	w.state = revision{w.event.Object.GetUID(), w.event.Object.GetResourceVersion()}
	j.expected.eventArrived(w)
	if j.expected.active() {
		j.observed.record(w.event, time.Now())
		j.observed.findPredecessor(w)
	}
	w.isReportExpected = j.expected.expectsReport(w.object, w.writing, w.arrived)
	e := gather(w, j.facts, j.expected)
	j.expected.expect(w, e)
	if r := j.queues.hold(w); r != nil {
		return r, e
	}
	return nil, nil
}

// enqueue adds an event to the queue of its object. r is the queue that the caller holds, with the event as its first
// one, or nil.
func (j *Joiner) enqueue(ctx context.Context, r *objectQueue, w *pendingEvent) error {
	if err := j.takeSlot(ctx); err != nil {
		if r != nil {
			j.finish(r)
		}
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.queues.add(r, w)
	return nil
}

// takeSlot acquires a slot. If too many events are pending, it forces delivery of the one that is due first.
func (j *Joiner) takeSlot(ctx context.Context) error {
	if j.queues.slots.TryAcquire(1) {
		return nil
	}
	j.mutex.Lock()
	j.queues.forceFirst(time.Now())
	j.mutex.Unlock()
	return j.queues.slots.Acquire(ctx, 1)
}

// deliver delivers an event of a queue that the caller holds.
func (j *Joiner) deliver(w *pendingEvent, v verdict) {
	if v.claims {
		v.fact.claimed = true
	}
	j.record(w, v)
	j.meters.count(v)
	w.deliver(v.author)
}

// record records what a verdict shows of the sources: the lag of its fact, that the change had no review, and whether the audit reported it.
func (j *Joiner) record(w *pendingEvent, v verdict) {
	measurable := v.fact != nil && w.measurable(v.fact)
	reported, missed := v.fact != nil && v.fact.Signal == Audit, v.unreported && w.isReportExpected && !w.forced
	if !measurable && !v.unreviewed && !reported && !missed {
		return
	}
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if reported || missed {
		j.expected.unreported.note(w.writing, reported, now)
	}
	if measurable {
		j.expected.measure(w, v.fact, now)
	}
	if v.unreviewed {
		j.expected.unreviewed.note(w.object, now)
	}
}

// finish removes the first event from a queue that the caller holds, and releases the queue.
func (j *Joiner) finish(r *objectQueue) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.queues.pop(r) {
		j.queues.release(r, time.Now())
	}
}

// Waiting reports whether an event of the object is pending.
func (j *Joiner) Waiting(object Object) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.queues.waiting(object)
}

// WaitingIn reports whether an event of any object in the namespace is pending.
func (j *Joiner) WaitingIn(namespace string) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.queues.waitingIn(namespace)
}
