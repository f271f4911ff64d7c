// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/heap"
	"time"
)

// queue holds the pending changes of a kind.
type queue struct {
	// waiting are the changes that were not due at the last check, ready those that were. Each heap has the earliest due first.
	waiting, ready byDue
	// expedited: changes that were due at that time do not wait for a full batch.
	expedited time.Time
}

func (q *queue) length() int { return len(q.waiting) + len(q.ready) }

func (q *queue) put(p *pending) { heap.Push(&q.waiting, p) }

// take removes a change from the queue.
func (q *queue) take(p *pending) {
	for _, h := range []*byDue{&q.waiting, &q.ready} {
		if p.index < len(*h) && (*h)[p.index] == p {
			heap.Remove(h, p.index)
			return
		}
	}
}

// first returns the change that has been due the longest at the last check, nil if nothing was due.
func (q *queue) first() *pending {
	if len(q.ready) == 0 {
		return nil
	}
	return q.ready[0]
}

// pop removes the change that first returns.
func (q *queue) pop() *pending { return heap.Pop(&q.ready).(*pending) }

// expedite makes all changes due now.
func (q *queue) expedite(now time.Time) {
	for _, p := range q.waiting {
		p.expedite(now)
	}
	for _, p := range q.ready {
		p.expedite(now)
	}
	q.ready = append(q.ready, q.waiting...)
	q.waiting = nil
	for i, p := range q.ready {
		p.index = i
	}
	heap.Init(&q.ready)
	q.expedited = now
}

// advance makes changes due at a time that would be due later.
func (q *queue) advance(latest time.Time) {
	for _, p := range q.waiting {
		p.advance(latest)
	}
	heap.Init(&q.waiting)
}

// look moves due changes from waiting to ready.
func (q *queue) look(now time.Time) {
	for len(q.waiting) > 0 && !q.waiting[0].due.After(now) {
		heap.Push(&q.ready, heap.Pop(&q.waiting))
	}
}

// oldestDue returns when the oldest due change became due, zero if nothing is due.
func (q *queue) oldestDue(now time.Time) time.Time {
	if q.look(now); len(q.ready) > 0 {
		return q.ready[0].due
	}
	return time.Time{}
}

// untilBatch returns the time until a batch may be ready, 0 if it is. It returns false when nothing is pending.
func (q *queue) untilBatch(now time.Time, maxItems int, maxWait time.Duration) (time.Duration, bool) {
	oldest := q.oldestDue(now)
	switch {
	case oldest.IsZero() && len(q.waiting) == 0:
		return 0, false
	case oldest.IsZero():
		return q.waiting[0].due.Sub(now), true
	case len(q.ready) >= maxItems || !oldest.After(q.expedited):
		return 0, true
	}
	wait := max(0, maxWait-now.Sub(oldest))
	if len(q.waiting) > 0 {
		wait = min(wait, q.waiting[0].due.Sub(now))
	}
	return wait, true
}

// byDue is a heap of changes, ordered by due time.
type byDue []*pending

func (h byDue) Len() int { return len(h) }

func (h byDue) Less(i, j int) bool {
	if order := h[i].due.Compare(h[j].due); order != 0 {
		return order < 0
	}
	return h[i].order < h[j].order
}

func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *byDue) Push(p any) {
	added := p.(*pending)
	added.index = len(*h)
	*h = append(*h, added)
}

// Pop implements heap.Interface.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}
