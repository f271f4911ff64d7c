// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// sweepInterval is how often facts are looked through for those that are past their time.
const sweepInterval = 10 * time.Second

// Run releases what waits, and returns when ctx has ended and its last delivery has returned. What waits then is not
// delivered.
func (j *Joiner) Run(ctx context.Context) {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		ready, next := j.ready(time.Now())
		for _, r := range ready {
			deliveries.Go(func() { j.advance(r) })
		}
		select {
		case <-ctx.Done():
			return
		case <-j.wake:
		case <-time.After(next):
		case now := <-sweep.C:
			if gone := j.sweep(now); len(gone) > 0 && j.config.Facts != nil {
				j.config.Facts.Forget(gone...)
			}
		}
	}
}

// ready returns the rooms that are due, which are held for the caller, and how long it is until the next one is.
func (j *Joiner) ready(now time.Time) (ready []*room, next time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for len(j.due) > 0 && !j.due[0].due.After(now) {
		r := heap.Pop(&j.due).(*room)
		r.held = true
		ready = append(ready, r)
	}
	if len(j.due) == 0 {
		return ready, sweepInterval
	}
	return ready, j.due[0].due.Sub(now)
}

// advance delivers events of one object for as long as none has to wait. It holds the room.
func (j *Joiner) advance(r *room) {
	for more := true; more; {
		w, evidence := j.look(r)
		if !w.ended() {
			v := evidence.decide()
			if !w.hurried && v.until.After(time.Now()) {
				if j.wait(r, v.until) {
					return
				}
				continue
			}
			j.handOver(w, v)
		}
		more = j.next(r)
	}
}

// look returns the first event of a room and what is known about it.
func (j *Joiner) look(r *room) (*waiting, *evidence) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	r.stirred = false
	return r.queue[0], j.gather(r.queue[0])
}

// wait gives up a room until it is due, unless there are new facts.
func (j *Joiner) wait(r *room, until time.Time) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if !r.stirred {
		j.release(r, until)
	}
	return !r.stirred
}

func (j *Joiner) next(r *room) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.pop(r)
}
