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

// line starts syncs in the order in which they were requested. It limits how many start in a minute, and how many run at once.
type line struct {
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

func newLine(clock clock.PassiveClock) *line {
	return &line{clock: clock, running: map[types.NamespacedName]time.Time{}}
}

// ask reports whether an environment can start a sync that was requested at a time, with at most most starts in a minute. Otherwise the
// environment is queued, and again is when to try again; zero if that is when another sync ends or another environment leaves.
func (l *line) ask(name types.NamespacedName, since time.Time, most int) (ok bool, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.stand(waiting{name, since})
	l.begun = slices.DeleteFunc(l.begun, func(at time.Time) bool { return now.Sub(at) >= rateWindow })
	ahead := slices.IndexFunc(l.waiting, func(w waiting) bool { return w.name == name })
	free := min(most-len(l.begun), maxRuns-len(l.running))
	if ahead < free {
		l.waiting = slices.Delete(l.waiting, ahead, ahead+1)
		l.begun = append(l.begun, now)
		l.running[name] = now
		return true, time.Time{}
	}
	if len(l.begun) > 0 {
		// An environment behind those of the next minute tries again then.
		again = l.begun[min(ahead, len(l.begun)-1)].Add(rateWindow)
	}
	return false, again
}

// stand queues an environment by the time of its request.
func (l *line) stand(w waiting) {
	l.waiting = slices.DeleteFunc(l.waiting, func(other waiting) bool { return other.name == w.name })
	at := slices.IndexFunc(l.waiting, func(other waiting) bool { return other.since.After(w.since) })
	if at < 0 {
		at = len(l.waiting)
	}
	l.waiting = slices.Insert(l.waiting, at, w)
}

// leave removes an environment from the queue. It returns the environments that can try again because of that.
func (l *line) leave(name types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(w waiting) bool { return w.name == name })
	if len(l.waiting) == before {
		return nil
	}
	return l.front()
}

// end records that a sync has ended. It returns the environments that can try again because of that.
func (l *line) end(name types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, name)
	return l.front()
}

// undo takes back a start that ask has granted.
func (l *line) undo(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.running[name]; ok {
		delete(l.running, name)
		if i := slices.Index(l.begun, at); i >= 0 {
			l.begun = slices.Delete(l.begun, i, i+1)
		}
	}
}

// front returns the first environments in the queue.
func (l *line) front() []types.NamespacedName {
	var names []types.NamespacedName
	for _, w := range l.waiting[:min(len(l.waiting), maxRuns)] {
		names = append(names, w.name)
	}
	return names
}

// numbers returns how many environments are queued, and how many syncs are in progress.
func (l *line) numbers() (waiting, running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting), len(l.running)
}
