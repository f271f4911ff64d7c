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
	// rateWindow is the time within which a number of runs begin.
	rateWindow = time.Minute
	// maxRuns is how many runs go on at once: each holds everything that its environment is made of.
	maxRuns = 8
)

// line has runs begin in the order in which they were wanted, so many within a minute, and at once.
type line struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// waiting are those who stand in line, the first in front.
	waiting []waiting
	// begun is when runs have begun within the last minute, the first in front.
	begun []time.Time
	// running are those who have begun and not ended.
	running map[types.NamespacedName]time.Time
}

// waiting is an environment with a run that is to begin.
type waiting struct {
	name  types.NamespacedName
	since time.Time
}

func newLine(clock clock.PassiveClock) *line {
	return &line{clock: clock, running: map[types.NamespacedName]time.Time{}}
}

// ask lets an environment begin a run that has been wanted since a time, of which most may begin within a minute. If it has to
// wait, it stands in line, and may ask again at a time; the zero time when somebody else ends or leaves.
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
		// In each minute so many begin; whoever is behind those of the next one looks again then.
		again = l.begun[min(ahead, len(l.begun)-1)].Add(rateWindow)
	}
	return false, again
}

// stand has an environment stand in line, by since when it wants to.
func (l *line) stand(w waiting) {
	l.waiting = slices.DeleteFunc(l.waiting, func(other waiting) bool { return other.name == w.name })
	at := slices.IndexFunc(l.waiting, func(other waiting) bool { return other.since.After(w.since) })
	if at < 0 {
		at = len(l.waiting)
	}
	l.waiting = slices.Insert(l.waiting, at, w)
}

// leave takes an environment out of the line that does not want to begin any more. It returns who may ask again because of that.
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

// end says that a run has ended. It returns who may ask again because of that.
func (l *line) end(name types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, name)
	return l.front()
}

// undo says that a run that might begin has not, so that another may.
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

// front are the first in line.
func (l *line) front() []types.NamespacedName {
	var names []types.NamespacedName
	for _, w := range l.waiting[:min(len(l.waiting), maxRuns)] {
		names = append(names, w.name)
	}
	return names
}

// numbers are how many stand in line, and how many runs go on.
func (l *line) numbers() (waiting, running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting), len(l.running)
}
