// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"context"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Submit finds the author of an event and calls deliver with it: exactly once, on this or another goroutine, unless ctx
// ends before or Run does. Events of one object are delivered in the order in which they were submitted, and no event
// waits for facts about another object. Submit returns an error, which is that of ctx, if it did not accept the event.
//
// Deliver may block. Submit blocks while it does, or while more events wait than there is room for.
func (j *Joiner) Submit(ctx context.Context, event Event, deliver func(context.Context, Author)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiting{
		event: &event, arrived: time.Now(),
		deliver: func(author Author) { deliver(ctx, author) }, ended: func() bool { return ctx.Err() != nil },
	}
	r, evidence := j.enter(w)
	if evidence != nil {
		if v := evidence.decide(); !v.until.After(w.arrived) {
			j.handOver(w, v)
			j.leave(r)
			return nil
		}
	}
	return j.stay(ctx, r, w)
}

// enter takes note of an event. It returns the evidence about it and the room that the caller holds, or nothing if events
// of the same object have to be delivered first.
func (j *Joiner) enter(w *waiting) (*room, *evidence) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.observe(w.event)
	w.object = objectOf(w.event.Resource.GroupResource(), w.event.Object)
	for _, signal := range []Signal{Audit, Admission} {
		j.sources.of(signal, w.object).wanted(w.arrived)
	}
	w.state = revision{w.event.Object.GetUID(), w.event.Object.GetResourceVersion()}
	if j.sources.heard() {
		w.predecessor, w.known = j.memory.predecessor(w.object, w.state.uid, w.state.version)
		if w.event.Operation == v1alpha1.OperationCreate {
			w.predecessor, w.known = "", true
		}
		if !w.known {
			w.unchangedSince = j.memory.unchangedSince(w.object, w.state.uid, w.state.version)
		}
	}
	e := j.gather(w)
	j.expect(w, e)
	if j.occupied[w.object] != nil {
		return nil, nil
	}
	r := newRoom(w)
	r.held = true
	j.occupied[w.object] = r
	return r, e
}

// expect measures how late facts about an event are: not at all if they are there.
func (j *Joiner) expect(w *waiting, e *evidence) {
	if w.event.Operation == v1alpha1.OperationDelete || !j.sources.heard() {
		return
	}
	var missing arrival
	if len(e.exact) > 0 {
		j.early(e.exact[0], w)
	} else {
		missing.made = w.state
	}
	attempts := e.attemptsSince(w.unchangedSince)
	switch {
	case !w.startKnown():
	case len(attempts) > 0:
		j.early(attempts[0], w)
	case w.known:
		missing.tried = revision{w.state.uid, w.predecessor}
	default:
		missing.tried = revision{w.state.uid, anyVersion}
	}
	j.arrivals.add(w.arrived, missing)
}

// early takes note of a fact that was there before its event.
func (j *Joiner) early(fact *kept, w *waiting) {
	if !fact.recovered {
		j.sources.of(fact.Signal, w.object).measure(0, fact.arrived, w.arrived)
	}
}

// expected says whether a fact is one whose lateness expect measures.
func (w *waiting) expected(fact *kept) bool {
	switch {
	case w.event.Operation == v1alpha1.OperationDelete:
		return false
	case fact.Signal == Audit:
		return fact.UID != "" && fact.After != ""
	}
	return w.startKnown()
}

// startKnown says whether it is known which state the change started from, or that the object has had no other for a time.
func (w *waiting) startKnown() bool { return w.known || !w.unchangedSince.IsZero() }

// stay lets an event wait, at the head of a room that the caller holds or else behind others of its object.
func (j *Joiner) stay(ctx context.Context, r *room, w *waiting) error {
	if err := j.takeSlot(ctx); err != nil {
		if r != nil {
			j.leave(r)
		}
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	w.slotted = true
	if r == nil {
		if r = j.occupied[w.object]; r != nil {
			r.queue = append(r.queue, w)
			return nil
		}
		r = newRoom(w)
		j.occupied[w.object] = r
	}
	j.release(r, w.arrived)
	return nil
}

// takeSlot makes the event that is nearest to its end be delivered with what is known if too many wait.
func (j *Joiner) takeSlot(ctx context.Context) error {
	select {
	case j.slots <- struct{}{}:
		return nil
	default:
	}
	j.hurry()
	select {
	case j.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *Joiner) hurry() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if len(j.due) == 0 {
		return
	}
	first := j.due[0]
	first.queue[0].hurried = true
	j.lookAgain(first, time.Now())
}

// handOver delivers an event whose room the caller holds.
func (j *Joiner) handOver(w *waiting, v verdict) {
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

// measure takes note of how late facts are that say of no state that they start from it or make it.
func (j *Joiner) measure(w *waiting, fact *kept) {
	if fact.recovered || w.expected(fact) {
		return
	}
	if _, delayed := askedAt(w.event.Object); !delayed {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.sources.of(fact.Signal, w.object).measure(fact.arrived.Sub(w.arrived), fact.arrived, time.Now())
	}
}

// leave takes the first event from a room that the caller holds, which it does no longer then.
func (j *Joiner) leave(r *room) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.pop(r) {
		j.release(r, time.Now())
	}
}

// pop takes the first event from a room that the caller holds, and says whether there are more.
func (j *Joiner) pop(r *room) bool {
	first := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	if first.slotted {
		<-j.slots
	}
	if len(r.queue) == 0 {
		delete(j.occupied, first.object)
		return false
	}
	return true
}

// release lets others hold a room, and has it looked at when it is due.
func (j *Joiner) release(r *room, due time.Time) {
	r.held, r.due = false, due
	heap.Push(&j.due, r)
	j.wakeRun()
}

// lookAgain has a room that nobody holds looked at earlier.
func (j *Joiner) lookAgain(r *room, due time.Time) {
	r.due = due
	heap.Fix(&j.due, r.position)
	j.wakeRun()
}

// stir has the first event of an object looked at again, since there are facts about it.
func (j *Joiner) stir(object Object, now time.Time) {
	switch r := j.occupied[object]; {
	case r == nil:
	case r.held:
		r.stirred = true
	default:
		j.lookAgain(r, now)
	}
}

func (j *Joiner) wakeRun() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Waiting says whether an event of the object has been submitted and not been delivered.
func (j *Joiner) Waiting(object Object) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.occupied[object] != nil
}

// WaitingIn says whether an event of any object in the namespace has been submitted and not been delivered.
func (j *Joiner) WaitingIn(namespace string) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for object := range j.occupied {
		if object.Namespace == namespace {
			return true
		}
	}
	return false
}
