// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/heap"
	"time"
)

// queue has the pending changes of a kind.
type queue struct {
	// waiting are not due yet, as far as anybody has looked; ready are. The first of each is due first.
	waiting, ready byDue
	// hurried: what was due then does not wait for a batch to become full.
	hurried time.Time
}

func (q *queue) length() int { return len(q.waiting) + len(q.ready) }

func (q *queue) put(p *pending) { heap.Push(&q.waiting, p) }

// take takes a change out of the queue.
func (q *queue) take(p *pending) {
	for _, h := range []*byDue{&q.waiting, &q.ready} {
		if p.index < len(*h) && (*h)[p.index] == p {
			heap.Remove(h, p.index)
			return
		}
	}
}

// hurry makes everything due now.
func (q *queue) hurry(now time.Time) {
	for _, p := range q.waiting {
		p.hasten(now)
	}
	for _, p := range q.ready {
		p.hasten(now)
	}
	q.ready = append(q.ready, q.waiting...)
	q.waiting = nil
	for i, p := range q.ready {
		p.index = i
	}
	heap.Init(&q.ready)
	q.hurried = now
}

// look finds out what is due.
func (q *queue) look(now time.Time) {
	for len(q.waiting) > 0 && !q.waiting[0].due.After(now) {
		heap.Push(&q.ready, heap.Pop(&q.waiting))
	}
}

// oldestDue is when the first of what is due became so, zero when nothing is.
func (q *queue) oldestDue(now time.Time) time.Time {
	if q.look(now); len(q.ready) > 0 {
		return q.ready[0].due
	}
	return time.Time{}
}

// untilBatch says how long it may be until there is a batch, 0 when there is one. False says that nothing is pending.
func (q *queue) untilBatch(now time.Time, maxItems int, maxWait time.Duration) (time.Duration, bool) {
	oldest := q.oldestDue(now)
	switch {
	case oldest.IsZero() && len(q.waiting) == 0:
		return 0, false
	case oldest.IsZero():
		return q.waiting[0].due.Sub(now), true
	case len(q.ready) >= maxItems || !oldest.After(q.hurried):
		return 0, true
	}
	wait := max(0, maxWait-now.Sub(oldest))
	if len(q.waiting) > 0 {
		wait = min(wait, q.waiting[0].due.Sub(now))
	}
	return wait, true
}

// hasten makes a change due now. One that is due keeps its place.
func (p *pending) hasten(now time.Time) {
	p.prompt = true
	if p.due.IsZero() || p.due.After(now) {
		p.due = now
	}
}

// byDue is a heap of changes.
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

// Push is for package heap.
func (h *byDue) Push(p any) {
	added := p.(*pending)
	added.index = len(*h)
	*h = append(*h, added)
}

// Pop is for package heap.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}
