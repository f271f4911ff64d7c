// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue keeps a bounded number of values of many owners, so that an owner who has many cannot push out those
// of the others: beyond the bound, whoever has most loses their oldest.
package fairqueue

import (
	"container/heap"
	"container/list"
)

// Queue holds values in the order in which each owner's came. It is not safe for concurrent use.
type Queue[V any] struct {
	bound  int
	length int
	owners map[string]*owner
	// most has the owner with most values first.
	most owners
}

// Entry is the place of a value in a queue.
type Entry[V any] struct {
	Value V

	owner *owner
	// element is nil once the value has left.
	element *list.Element
}

// Queued says whether the value is still there.
func (e *Entry[V]) Queued() bool { return e.element != nil }

// New returns an empty queue for at most bound values.
func New[V any](bound int) *Queue[V] {
	return &Queue[V]{bound: bound, owners: map[string]*owner{}}
}

// Len is how many values there are.
func (q *Queue[V]) Len() int { return q.length }

// Add appends a value of an owner. If that is one too many, it returns the entry that had to leave, which may be the new
// one.
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

// Evict removes the oldest value of the owner with most values, and returns its entry. The queue must not be empty.
func (q *Queue[V]) Evict() *Entry[V] {
	evicted := q.most[0].entries.Front().Value.(*Entry[V])
	q.Remove(evicted)
	return evicted
}

// Remove takes a value out, if it is still there.
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

// Entries returns all that there is, in the order of each owner's.
func (q *Queue[V]) Entries() []*Entry[V] {
	entries := make([]*Entry[V], 0, q.length)
	for _, o := range q.most {
		for element := o.entries.Front(); element != nil; element = element.Next() {
			entries = append(entries, element.Value.(*Entry[V]))
		}
	}
	return entries
}

// owner has at least one value.
type owner struct {
	name    string
	entries list.List
	// place is that in the heap.
	place int
}

// owners is a heap with the longest list first.
type owners []*owner

var _ heap.Interface = &owners{}

// Len is that of sort.Interface.
func (o owners) Len() int { return len(o) }

// Less says whether owner i has more than owner j.
func (o owners) Less(i, j int) bool { return o[i].entries.Len() > o[j].entries.Len() }

// Swap is that of sort.Interface.
func (o owners) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push is that of heap.Interface.
func (o *owners) Push(added any) {
	added.(*owner).place = len(*o)
	*o = append(*o, added.(*owner))
}

// Pop is that of heap.Interface.
func (o *owners) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
