// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"sync"
	"time"
)

// sweepInterval is the interval at which expired facts are removed.
const sweepInterval = 10 * time.Second

// Run delivers pending events as they become due. It returns when ctx is done and its last delivery has returned. Events
// that are pending then are not delivered.
func (j *Joiner) Run(ctx context.Context) {
	defer j.meters.clearLag()
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		j.mutex.Lock()
		ready, next := j.queues.takeDue(time.Now())
		j.mutex.Unlock()
		for _, r := range ready {
			deliveries.Go(func() { j.advance(r) })
		}
		select {
		case <-ctx.Done():
			return
		case <-j.queues.wake:
		case <-time.After(next):
		case now := <-sweep.C:
			if gone := j.sweep(now); len(gone) > 0 && j.config.Facts != nil {
				j.config.Facts.Forget(gone...)
			}
		}
	}
}

// advance delivers events of a held queue until one has to wait.
func (j *Joiner) advance(r *objectQueue) {
	for more := true; more; {
		w, evidence := j.peek(r)
		if !w.ended() {
			v := evidence.decide()
			if !w.forced && v.until.After(time.Now()) {
				if j.wait(r, v.until) {
					return
				}
				continue
			}
			j.deliver(w, v)
		}
		more = j.next(r)
	}
}

// peek returns the first event of a queue and the evidence about it.
func (j *Joiner) peek(r *objectQueue) (*pendingEvent, *evidence) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	r.factsAdded = false
	return r.queue[0], gather(r.queue[0], j.facts, j.expected)
}

// wait releases a queue until it is due, unless facts have been added.
func (j *Joiner) wait(r *objectQueue, until time.Time) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.queues.wait(r, until)
}

// next removes the first event of a queue, and reports whether there are more.
func (j *Joiner) next(r *objectQueue) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.queues.pop(r)
}
