// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"sync"
	"sync/atomic"
)

// watchSet is the set of active watches.
type watchSet struct {
	mu     sync.Mutex
	served map[*watchPosition]struct{}
}

// watchPosition is the progress of a watch: the last revision that it has processed.
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

// slowest returns the number of watches, and the lowest position of them; head if none is behind it.
func (s *watchSet) slowest(head int64) (watches int, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for position := range s.served {
		head = min(head, position.revision.Load())
	}
	return len(s.served), head
}
