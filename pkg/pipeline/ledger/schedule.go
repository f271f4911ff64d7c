// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// kinds are the kinds of batches, in the order in which they are sent when both are due at the same time.
var kinds = [...]item.Kind{item.CustomResourceDefinition, item.Instance}

// schedule has the pending changes of all kinds, and determines when a batch of them is due.
type schedule struct {
	clock clock.PassiveClock
	// wake is signaled when changes become due at another time.
	wake   wakeup
	queues map[item.Kind]*queue
	// order numbers the pending changes.
	order uint64
}

func newSchedule(clock clock.PassiveClock, wake wakeup) *schedule {
	s := &schedule{clock: clock, wake: wake, queues: map[item.Kind]*queue{}}
	for _, kind := range kinds {
		s.queues[kind] = &queue{}
	}
	return s
}

// pend returns the pending change of an object, and creates one if there is none. The caller puts a new one into its queue with put or
// move.
func (s *schedule) pend(o *object, key item.Key) *pending {
	if o.pending == nil {
		s.order++
		o.pending = &pending{key: key, first: s.clock.Now(), order: s.order}
	}
	return o.pending
}

// put puts a change into its queue, and leaves when it is due. It does not wake Next.
func (s *schedule) put(p *pending) { s.queues[p.key.Kind].put(p) }

// take removes a change from its queue.
func (s *schedule) take(p *pending) { s.queues[p.key.Kind].take(p) }

// move changes when a change is due, and puts it at its place in its queue.
func (s *schedule) move(p *pending, change func(now time.Time)) {
	s.take(p)
	change(s.clock.Now())
	s.put(p)
	s.wake.signal()
}

// expedite makes all changes of kinds due now. No kinds means all.
func (s *schedule) expedite(kinds []item.Kind) {
	now := s.clock.Now()
	for kind, q := range s.queues {
		if within(kinds, kind) {
			q.expedite(now)
		}
	}
	s.wake.signal()
}

// advance makes all changes due at a time that would be due later.
func (s *schedule) advance(latest time.Time) {
	for _, q := range s.queues {
		q.advance(latest)
	}
	s.wake.signal()
}

// untilBatch returns the time until a batch may be due, 0 if it is. It returns false when nothing is pending.
func (s *schedule) untilBatch(maxItems int, maxWait time.Duration) (least time.Duration, some bool) {
	now := s.clock.Now()
	for _, q := range s.queues {
		if wait, has := q.untilBatch(now, maxItems, maxWait); has && (!some || wait < least) {
			least, some = wait, true
		}
	}
	return least, some
}

// next returns the queue whose oldest change has been due the longest, and since when. It returns nil if nothing is due.
func (s *schedule) next() (oldest *queue, since time.Time) {
	now := s.clock.Now()
	for _, kind := range kinds {
		q := s.queues[kind]
		if due := q.oldestDue(now); !due.IsZero() && (oldest == nil || due.Before(since)) {
			oldest, since = q, due
		}
	}
	return oldest, since
}

// length returns the number of changes.
func (s *schedule) length() (number int) {
	for _, q := range s.queues {
		number += q.length()
	}
	return number
}

// all returns all changes.
func (s *schedule) all() iter.Seq[*pending] {
	return func(yield func(*pending) bool) {
		for _, q := range s.queues {
			for _, h := range []byDue{q.waiting, q.ready} {
				for _, p := range h {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// within reports whether a kind is in a scope. An empty scope has all kinds.
func within(scope []item.Kind, kind item.Kind) bool {
	return len(scope) == 0 || slices.Contains(scope, kind)
}
