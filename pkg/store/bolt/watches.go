// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"sync"
	"sync/atomic"
)

// watchSet is the watches that are being served.
type watchSet struct {
	mu     sync.Mutex
	served map[*watchPosition]struct{}
}

// watchPosition is how far a watch has come: the last revision that it has looked at.
type watchPosition struct{ revision atomic.Int64 }

func newWatchSet() *watchSet {
	return &watchSet{served: map[*watchPosition]struct{}{}}
}

// join adds a watch; leave must be called when it ends.
func (s *watchSet) join(position *watchPosition) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[position] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.served, position)
	}
}

// slowest returns how many watches there are, and the least that one of them has come to; head if none is behind it.
func (s *watchSet) slowest(head int64) (watches int, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for position := range s.served {
		head = min(head, position.revision.Load())
	}
	return len(s.served), head
}
