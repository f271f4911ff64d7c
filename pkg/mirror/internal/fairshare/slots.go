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
	mu   sync.Mutex
	free int
	// queue has the owners with waiting callers, next first. It is empty while a slot is free.
	queue []*owner
}

type owner struct {
	name string
	// waiting has a channel for each waiting caller, oldest first, which is closed when the caller acquires a slot.
	waiting []chan struct{}
}

// New returns a semaphore of the size.
func New(slots int) *Slots { return &Slots{free: slots} }

// Acquire waits for a slot on behalf of an owner. The caller must call release once. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context, owner string) (release func(), err error) {
	if given := s.enqueue(owner); given != nil {
		select {
		case <-given:
		case <-ctx.Done():
			if !s.withdraw(owner, given) {
				s.release() // It was acquired at the same moment.
			}
			return nil, ctx.Err()
		}
	}
	return s.release, nil
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
	if s.free > 0 {
		s.free--
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

// release passes a slot to the next owner, which moves to the end of the queue if it has more waiting callers.
func (s *Slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.free++
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	close(next.waiting[0])
	if next.waiting = next.waiting[1:]; len(next.waiting) > 0 {
		s.queue = append(s.queue, next)
	}
}
