// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"time"
)

// waiting is a submitted event that has not been delivered.
type waiting struct {
	event   *Event
	object  Object
	state   revision
	arrived time.Time
	// predecessor is the resourceVersion before the event's, if known says so.
	predecessor string
	known       bool
	// unchangedSince is since when the object had the resourceVersion before the event's, if it is not known which that is;
	// zero if that is not certain either.
	unchangedSince time.Time
	// deliver hands the event on, ended says that nobody wants it any more.
	deliver func(Author)
	ended   func() bool
	// hurried says that there is no room to let it wait longer.
	hurried bool
	// slotted says that it holds one of the slots for events that wait.
	slotted bool
	// hash is the event's content once hashed says so.
	hash   string
	hashed bool
}

// content computes the event's content when it is first asked for. It is for the one who holds the room.
func (w *waiting) content() string {
	if !w.hashed && w.event.Content != nil {
		w.hash = w.event.Content()
	}
	w.hashed = true
	return w.hash
}

// room is where the events of one object wait, in order. It exists while there are any.
type room struct {
	queue []*waiting
	// held says that somebody is at work on the first event, on whatever goroutine. Only that one may take from the queue.
	held bool
	// stirred says that facts have come since the one who holds the room has looked.
	stirred bool
	// due is when to look at the first event again. Position is that in the heap of the rooms that nobody holds.
	due      time.Time
	position int
	// alone is where the queue begins: most have one event.
	alone [1]*waiting
}

func newRoom(first *waiting) *room {
	r := &room{alone: [1]*waiting{first}}
	r.queue = r.alone[:]
	return r
}

// rooms has the room that is due first on top.
type rooms []*room

var _ heap.Interface = &rooms{}

func (r rooms) Len() int           { return len(r) }
func (r rooms) Less(i, j int) bool { return r[i].due.Before(r[j].due) }
func (r rooms) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].position, r[j].position = i, j
}

// Push is for package heap.
func (r *rooms) Push(x any) {
	one := x.(*room)
	one.position = len(*r)
	*r = append(*r, one)
}

// Pop is for package heap.
func (r *rooms) Pop() any {
	last := len(*r) - 1
	one := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return one
}
