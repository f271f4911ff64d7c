// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"time"

	"golang.org/x/sync/semaphore"
)

// waitingLimit bounds the events that wait.
const waitingLimit = 10_000

// eventQueues has the pending events, in one queue for each object, and the time at which to process each queue. It is
// used under the Joiner's lock, except that slots and wake may be used without.
type eventQueues struct {
	// slots are acquired by events that wait, which bounds their number.
	slots *semaphore.Weighted
	// wake makes Run check the queues again.
	wake     chan struct{}
	byObject map[Object]*objectQueue
	due      queueHeap
}

func newEventQueues() *eventQueues {
	return &eventQueues{slots: semaphore.NewWeighted(waitingLimit), wake: make(chan struct{}, 1), byObject: map[Object]*objectQueue{}}
}

// waiting reports whether an event of the object is pending.
func (q *eventQueues) waiting(object Object) bool { return q.byObject[object] != nil }

// waitingIn reports whether an event of any object in the namespace is pending.
func (q *eventQueues) waitingIn(namespace string) bool {
	for object := range q.byObject {
		if object.Namespace == namespace {
			return true
		}
	}
	return false
}

// hold returns a new queue with an event, held for the caller, or nil if events of the same object are pending.
func (q *eventQueues) hold(w *pendingEvent) *objectQueue {
	if q.waiting(w.object) {
		return nil
	}
	r := newObjectQueue(w)
	r.held = true
	q.byObject[w.object] = r
	return r
}

// add adds an event that has a slot to the queue of its object. r is the queue that the caller holds, with the event as
// its first one, or nil.
func (q *eventQueues) add(r *objectQueue, w *pendingEvent) {
	w.slotted = true
	if r == nil {
		if r = q.byObject[w.object]; r != nil {
			r.queue = append(r.queue, w)
			return
		}
		r = newObjectQueue(w)
		q.byObject[w.object] = r
	}
	q.release(r, w.arrived)
}

// pop removes the first event from a queue that the caller holds, and reports whether there are more.
func (q *eventQueues) pop(r *objectQueue) bool {
	first := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	if first.slotted {
		q.slots.Release(1)
	}
	if len(r.queue) == 0 {
		delete(q.byObject, first.object)
		return false
	}
	return true
}

// wait releases a queue until it is due, unless facts have been added since the holder gathered evidence. It reports
// whether it has released the queue.
func (q *eventQueues) wait(r *objectQueue, until time.Time) bool {
	if !r.factsAdded {
		q.release(r, until)
	}
	return !r.factsAdded
}

// release ends the caller's hold of a queue and schedules it.
func (q *eventQueues) release(r *objectQueue, due time.Time) {
	r.held, r.due = false, due
	heap.Push(&q.due, r)
	q.wakeRun()
}

// reschedule changes when a queue that is not held is due.
func (q *eventQueues) reschedule(r *objectQueue, due time.Time) {
	r.due = due
	heap.Fix(&q.due, r.position)
	q.wakeRun()
}

// notify reschedules the queue of an object because facts about it have arrived.
func (q *eventQueues) notify(object Object, now time.Time) {
	switch r := q.byObject[object]; {
	case r == nil:
	case r.held:
		r.factsAdded = true
	default:
		q.reschedule(r, now)
	}
}

// forceFirst forces delivery of the event that is due first.
func (q *eventQueues) forceFirst(now time.Time) {
	if len(q.due) == 0 {
		return
	}
	first := q.due[0]
	first.queue[0].forced = true
	q.reschedule(first, now)
}

// takeDue returns the queues that are due, held for the caller, and the time until the next one is due.
func (q *eventQueues) takeDue(now time.Time) (ready []*objectQueue, next time.Duration) {
	for len(q.due) > 0 && !q.due[0].due.After(now) {
		r := heap.Pop(&q.due).(*objectQueue)
		r.held = true
		ready = append(ready, r)
	}
	if len(q.due) == 0 {
		return ready, sweepInterval
	}
	return ready, q.due[0].due.Sub(now)
}

func (q *eventQueues) wakeRun() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
