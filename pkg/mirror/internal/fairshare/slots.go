// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fairshare

import (
	"context"
	"slices"
	"sync"
)

// Slots are a number of slots, each of which is held by one caller at a time. Owners who wait are given one in turn, round and
// round, however many callers wait for each of them.
type Slots struct {
	mu   sync.Mutex
	free int
	// queue has the owners with waiting callers, the next first. It is empty while a slot is free.
	queue []*owner
}

type owner struct {
	name string
	// waiting are closed when the caller is given a slot, the oldest first.
	waiting []chan struct{}
}

// New returns so many free slots.
func New(slots int) *Slots { return &Slots{free: slots} }

// Acquire waits for a slot on behalf of an owner. release gives it back, and is to be called once. The error is that of ctx.
func (s *Slots) Acquire(ctx context.Context, owner string) (release func(), err error) {
	if given := s.ask(owner); given != nil {
		select {
		case <-given:
		case <-ctx.Done():
			if !s.withdraw(owner, given) {
				s.release() // It was given at the same moment.
			}
			return nil, ctx.Err()
		}
	}
	return s.release, nil
}

// Contended says whether anybody waits for a slot.
func (s *Slots) Contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// ask takes a free slot, or returns what is closed when one is given.
func (s *Slots) ask(name string) (given chan struct{}) {
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

// indexOf is the place of an owner in the queue, -1 if it is not queued.
func (s *Slots) indexOf(name string) int {
	return slices.IndexFunc(s.queue, func(o *owner) bool { return o.name == name })
}

// withdraw ends the wait for a slot, unless one was given.
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

// release gives a slot to the next owner, which moves to the end of the queue if it has more waiting callers.
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
