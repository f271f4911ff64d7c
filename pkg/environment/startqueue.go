// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// rateWindow is the period of the rate limit.
	rateWindow = time.Minute
	// maxRuns limits concurrent syncs: each holds the whole state of its environment in memory.
	maxRuns = 8
)

// startQueue starts syncs in the order in which they were requested. It limits how many start in a minute, and how many run at once.
type startQueue struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// waiting are the queued environments, the next one first.
	waiting []waiting
	// begun are the start times within the last minute, oldest first.
	begun []time.Time
	// running are the start times of syncs in progress.
	running map[types.NamespacedName]time.Time
}

// waiting is a queued environment.
type waiting struct {
	name  types.NamespacedName
	since time.Time
}

func newStartQueue(clock clock.PassiveClock) *startQueue {
	return &startQueue{clock: clock, running: map[types.NamespacedName]time.Time{}}
}

// tryStart reports whether an environment can start a sync that was requested at a time, with at most most starts in a minute. Otherwise
// the environment is queued, and again is when to try again; zero if that is when another sync ends or another environment leaves.
func (q *startQueue) tryStart(name types.NamespacedName, since time.Time, most int) (ok bool, again time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	q.insert(waiting{name, since})
	q.begun = slices.DeleteFunc(q.begun, func(at time.Time) bool { return now.Sub(at) >= rateWindow })
	ahead := slices.IndexFunc(q.waiting, func(w waiting) bool { return w.name == name })
	free := min(most-len(q.begun), maxRuns-len(q.running))
	if ahead < free {
		q.waiting = slices.Delete(q.waiting, ahead, ahead+1)
		q.begun = append(q.begun, now)
		q.running[name] = now
		return true, time.Time{}
	}
	if len(q.begun) > 0 {
		// An environment behind those of the next minute tries again then.
		again = q.begun[min(ahead, len(q.begun)-1)].Add(rateWindow)
	}
	return false, again
}

// insert queues an environment by the time of its request, behind those with the same time. One that waits already keeps its place: times
// are in seconds, and if each that tries went behind the others of its second, none of them would ever be one of the first.
func (q *startQueue) insert(w waiting) {
	if slices.ContainsFunc(q.waiting, func(other waiting) bool { return other.name == w.name && other.since.Equal(w.since) }) {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other waiting) bool { return other.name == w.name })
	at := slices.IndexFunc(q.waiting, func(other waiting) bool { return other.since.After(w.since) })
	if at < 0 {
		at = len(q.waiting)
	}
	q.waiting = slices.Insert(q.waiting, at, w)
}

// leave removes an environment from the queue. It returns the environments that can try again because of that.
func (q *startQueue) leave(name types.NamespacedName) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiting) bool { return w.name == name })
	if len(q.waiting) == before {
		return nil
	}
	return q.front()
}

// end records that a sync has ended. It returns the environments that can try again because of that.
func (q *startQueue) end(name types.NamespacedName) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, name)
	return q.front()
}

// undo takes back a start that tryStart has allowed. It returns the environments that can try again because of that.
func (q *startQueue) undo(name types.NamespacedName) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.running[name]
	delete(q.running, name)
	if i := slices.Index(q.begun, at); i >= 0 {
		q.begun = slices.Delete(q.begun, i, i+1)
	}
	return q.front()
}

// front returns the first environments in the queue.
func (q *startQueue) front() []types.NamespacedName {
	var names []types.NamespacedName
	for _, w := range q.waiting[:min(len(q.waiting), maxRuns)] {
		names = append(names, w.name)
	}
	return names
}

// numbers returns how many environments are queued, and how many syncs are in progress.
func (q *startQueue) numbers() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), len(q.running)
}
