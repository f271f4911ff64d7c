// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fairshare

import (
	"context"
	"slices"
	"sync"
)

// Slots is a semaphore. Waiting owners acquire slots round-robin, however many callers wait for each of them.
type Slots struct {
	// each is the number of slots that one owner may hold.
	each int

	mu   sync.Mutex
	free int
	// held is the number of slots that each owner holds, if it holds any.
	held map[string]int
	// queue has the owners with waiting callers, next first. While a slot is free, those hold as many as they may.
	queue []*owner
}

type owner struct {
	name string
	// waiting has a channel for each waiting caller, oldest first, which is closed when the caller acquires a slot.
	waiting []chan struct{}
}

// New returns a semaphore of the size.
func New(slots int) *Slots { return NewCapped(slots, slots) }

// NewCapped returns a semaphore of the size, of which each owner may hold a number, however many are free.
func NewCapped(slots, each int) *Slots {
	return &Slots{free: slots, each: each, held: map[string]int{}}
}

// Acquire waits for a slot on behalf of an owner. The caller must call release once. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context, owner string) (release func(), err error) {
	if given := s.enqueue(owner); given != nil {
		select {
		case <-given:
		case <-ctx.Done():
			if !s.withdraw(owner, given) {
				s.release(owner) // It was acquired at the same moment.
			}
			return nil, ctx.Err()
		}
	}
	return func() { s.release(owner) }, nil
}

// Contended reports whether a caller waits for a slot.
func (s *Slots) Contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// enqueue takes a free slot, or returns a channel that is closed when the caller acquires one.
func (s *Slots) enqueue(name string) (given chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 && s.held[name] < s.each {
		s.take(name)
		return nil
	}
	given = make(chan struct{})
	if at := s.indexOf(name); at >= 0 {
		s.queue[at].waiting = append(s.queue[at].waiting, given)
	} else {
		s.queue = append(s.queue, &owner{name: name, waiting: []chan struct{}{given}})
	}
	return given
}

// indexOf returns the index of an owner in the queue, or -1.
func (s *Slots) indexOf(name string) int {
	return slices.IndexFunc(s.queue, func(o *owner) bool { return o.name == name })
}

// withdraw ends the wait for a slot. It returns false if the caller has acquired one.
func (s *Slots) withdraw(name string, given chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	queued := s.indexOf(name)
	if queued < 0 {
		return false
	}
	o := s.queue[queued]
	at := slices.Index(o.waiting, given)
	if at < 0 {
		return false
	}
	if o.waiting = slices.Delete(o.waiting, at, at+1); len(o.waiting) == 0 {
		s.queue = slices.Delete(s.queue, queued, queued+1)
	}
	return true
}

// take gives a free slot to an owner.
func (s *Slots) take(name string) {
	s.free--
	s.held[name]++
}

// release passes a slot to the next owner that may hold one more, which moves to the end of the queue if it has more waiting callers.
func (s *Slots) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.held[name]--; s.held[name] == 0 {
		delete(s.held, name)
	}
	at := slices.IndexFunc(s.queue, func(o *owner) bool { return s.held[o.name] < s.each })
	if at < 0 {
		return
	}
	next := s.queue[at]
	s.queue = slices.Delete(s.queue, at, at+1)
	s.take(next.name)
	close(next.waiting[0])
	if next.waiting = next.waiting[1:]; len(next.waiting) > 0 {
		s.queue = append(s.queue, next)
	}
}
