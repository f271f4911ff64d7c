// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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

// begin records an event. It returns the evidence about it and the queue that the caller holds, or nil if events of the
// same object have to be delivered first.
func (j *Joiner) begin(w *pendingEvent) (*objectQueue, *evidence) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.observe(w.event)
	w.object = objectOf(w.event.Resource.GroupResource(), w.event.Object)
	for _, signal := range []Signal{Audit, Admission} {
		j.sources.of(signal, w.object).wanted(w.arrived)
	}
	w.state = revision{w.event.Object.GetUID(), w.event.Object.GetResourceVersion()}
	if j.sources.active() {
		w.predecessor, w.known = j.versions.predecessor(w.object, w.state.uid, w.state.version)
		if w.event.Operation == v1alpha1.OperationCreate {
			w.predecessor, w.known = "", true
		}
		if !w.known {
			w.unchangedSince = j.versions.unchangedSince(w.object, w.state.uid, w.state.version)
		}
	}
	e := j.gather(w)
	j.expectFacts(w, e)
	if r := j.queues.hold(w); r != nil {
		return r, e
	}
	return nil, nil
}

// expectFacts measures how late facts about an event are: facts that have already arrived are not late.
func (j *Joiner) expectFacts(w *pendingEvent, e *evidence) {
	if w.event.Operation == v1alpha1.OperationDelete || !j.sources.active() {
		return
	}
	var missing arrival
	if len(e.exact) > 0 {
		j.measureEarly(e.exact[0], w)
	} else {
		missing.after = w.state
	}
	attempts := e.attemptsSince(w.unchangedSince)
	switch {
	case !w.startKnown():
	case len(attempts) > 0:
		j.measureEarly(attempts[0], w)
	case w.known:
		missing.before = revision{w.state.uid, w.predecessor}
	default:
		missing.before = revision{w.state.uid, anyVersion}
	}
	j.arrivals.add(w.arrived, missing)
}

// measureEarly records a fact that arrived before its event.
func (j *Joiner) measureEarly(fact *storedFact, w *pendingEvent) {
	if !fact.recovered {
		j.sources.of(fact.Signal, w.object).measure(0, fact.arrived, w.arrived)
	}
}

// expected reports whether expectFacts measures the lag of a fact.
func (w *pendingEvent) expected(fact *storedFact) bool {
	switch {
	case w.event.Operation == v1alpha1.OperationDelete:
		return false
	case fact.Signal == Audit:
		return fact.UID != "" && fact.After != ""
	}
	return w.startKnown()
}

// startKnown reports whether the state that the change started from is known, or the object had a single state for some
// time.
func (w *pendingEvent) startKnown() bool { return w.known || !w.unchangedSince.IsZero() }

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
	if j.queues.slots.tryAcquire() {
		return nil
	}
	j.mutex.Lock()
	j.queues.forceFirst(time.Now())
	j.mutex.Unlock()
	return j.queues.slots.acquire(ctx)
}

// deliver delivers an event of a queue that the caller holds.
func (j *Joiner) deliver(w *pendingEvent, v verdict) {
	if v.claims {
		v.fact.claimed = true
	}
	if v.fact != nil {
		j.measure(w, v.fact)
	}
	if v.unreviewed {
		j.noteUnreviewed(w.object)
	}
	j.meters.count(v)
	w.deliver(v.author)
}

// measure records the lag of a fact whose states are not known, so that expectFacts does not measure it.
func (j *Joiner) measure(w *pendingEvent, fact *storedFact) {
	if fact.recovered || w.expected(fact) {
		return
	}
	if _, delayed := deletionRequestedAt(w.event.Object); !delayed {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.sources.of(fact.Signal, w.object).measure(fact.arrived.Sub(w.arrived), fact.arrived, time.Now())
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
