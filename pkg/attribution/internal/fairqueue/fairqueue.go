// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue implements a bounded queue of values of many owners. Beyond the bound, the oldest value of the owner
// with the most values is evicted, so that an owner with many values cannot evict those of others.
package fairqueue

import (
	"container/heap"
	"container/list"
)

// Queue holds each owner's values in the order in which they were added. It is not safe for concurrent use.
type Queue[V any] struct {
	bound  int
	length int
	owners map[string]*owner
	// most is a heap with the owner with the most values first.
	most owners
}

// Entry is an element of a queue.
type Entry[V any] struct {
	Value V

	owner *owner
	// element is nil once the entry has been removed.
	element *list.Element
}

// Queued reports whether the entry is in the queue.
func (e *Entry[V]) Queued() bool { return e.element != nil }

// New returns an empty queue that holds at most bound values.
func New[V any](bound int) *Queue[V] {
	return &Queue[V]{bound: bound, owners: map[string]*owner{}}
}

// Add appends a value of an owner. If the queue was full, it also returns the evicted entry, which may be the new one.
func (q *Queue[V]) Add(name string, value V) (added, evicted *Entry[V]) {
	o, found := q.owners[name]
	if !found {
		o = &owner{name: name}
		q.owners[name] = o
		heap.Push(&q.most, o)
	}
	added = &Entry[V]{Value: value, owner: o}
	added.element = o.entries.PushBack(added)
	q.length++
	heap.Fix(&q.most, o.place)
	if q.length > q.bound {
		evicted = q.Evict()
	}
	return added, evicted
}

// Evict removes the oldest value of the owner with the most values and returns its entry. The queue must not be empty.
func (q *Queue[V]) Evict() *Entry[V] {
	evicted := q.most[0].entries.Front().Value.(*Entry[V])
	q.Remove(evicted)
	return evicted
}

// Remove removes an entry. It does nothing if the entry is no longer queued.
func (q *Queue[V]) Remove(entry *Entry[V]) {
	if !entry.Queued() {
		return
	}
	o := entry.owner
	o.entries.Remove(entry.element)
	entry.element = nil
	q.length--
	if o.entries.Len() == 0 {
		heap.Remove(&q.most, o.place)
		delete(q.owners, o.name)
		return
	}
	heap.Fix(&q.most, o.place)
}

// Entries returns all entries, those of each owner in their order.
func (q *Queue[V]) Entries() []*Entry[V] {
	entries := make([]*Entry[V], 0, q.length)
	for _, o := range q.most {
		for element := o.entries.Front(); element != nil; element = element.Next() {
			entries = append(entries, element.Value.(*Entry[V]))
		}
	}
	return entries
}

// owner is an owner with at least one value.
type owner struct {
	name    string
	entries list.List
	// place is the index in the heap.
	place int
}

// owners is a heap with the longest list first.
type owners []*owner

var _ heap.Interface = &owners{}

// Len implements sort.Interface.
func (o owners) Len() int { return len(o) }

// Less reports whether owner i has more values than owner j.
func (o owners) Less(i, j int) bool { return o[i].entries.Len() > o[j].entries.Len() }

// Swap implements sort.Interface.
func (o owners) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push implements heap.Interface.
func (o *owners) Push(added any) {
	added.(*owner).place = len(*o)
	*o = append(*o, added.(*owner))
}

// Pop implements heap.Interface.
func (o *owners) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
