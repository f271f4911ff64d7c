// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"time"
)

// pendingEvent is a submitted event that has not been delivered.
type pendingEvent struct {
	event   *Event
	object  Object
	state   revision
	arrived time.Time
	// predecessor is the resourceVersion before the event's, if known is set.
	predecessor string
	known       bool
	// unchangedSince is the time since which the object had the resourceVersion before the event's, if that one is not
	// known; zero if that time is uncertain, too.
	unchangedSince time.Time
	// writing is who made the change, if the audit is used.
	writing writing
	// isReportExpected is set if the audit is expected to report the event.
	isReportExpected bool
	// usual is waitingTimes.usual, which does not change any more once it has passed.
	usual time.Time
	// deliver delivers the event; ended reports whether its context is done.
	deliver func(Author)
	ended   func() bool
	// forced is set if the event must be delivered without waiting longer, because too many events wait.
	forced bool
	// slotted is set if the event holds one of the slots for waiting events.
	slotted bool
	// hash is the event's content, once hashed is set.
	hash   string
	hashed bool
}

// content returns the event's content, which it computes on the first call. Only the holder of the queue may call it.
func (w *pendingEvent) content() string {
	if !w.hashed && w.event.Content != nil {
		w.hash = w.event.Content()
	}
	w.hashed = true
	return w.hash
}

// objectQueue holds the pending events of one object, in order. It exists while there are any.
type objectQueue struct {
	queue []*pendingEvent
	// held is set while a goroutine processes the first event. Only the holder may remove events from the queue.
	held bool
	// factsAdded is set if facts arrived since the holder last gathered evidence.
	factsAdded bool
	// due is when to process the first event again. position is the index in the heap of queues that are not held.
	due      time.Time
	position int
	// inline is the initial storage of queue: most queues have one event.
	inline [1]*pendingEvent
}

func newObjectQueue(first *pendingEvent) *objectQueue {
	r := &objectQueue{inline: [1]*pendingEvent{first}}
	r.queue = r.inline[:]
	return r
}

// queueHeap is a heap with the queue that is due first on top.
type queueHeap []*objectQueue

var _ heap.Interface = &queueHeap{}

func (r queueHeap) Len() int           { return len(r) }
func (r queueHeap) Less(i, j int) bool { return r[i].due.Before(r[j].due) }
func (r queueHeap) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].position, r[j].position = i, j
}

// Push implements heap.Interface.
func (r *queueHeap) Push(x any) {
	one := x.(*objectQueue)
	one.position = len(*r)
	*r = append(*r, one)
}

// Pop implements heap.Interface.
func (r *queueHeap) Pop() any {
	last := len(*r) - 1
	one := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return one
}
