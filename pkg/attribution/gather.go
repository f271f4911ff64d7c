// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

// gather collects the current evidence about an event.
func (j *Joiner) gather(w *pendingEvent) *evidence {
	e := &evidence{pending: w, times: waitingTimes{w.arrived, w.arrived, w.arrived}}
	if j.sources.active() {
		e.times = j.times(w, time.Now())
	}
	if j.facts.empty() {
		return e
	}
	e.reviewsMissed = j.unreviewed.has(w.object, time.Now())
	j.facts.gather(e)
	return e
}

// times returns the times until which an event waits for facts. Measurements since the event arrived are included.
func (j *Joiner) times(w *pendingEvent, now time.Time) waitingTimes {
	audit := j.sources.grace(Audit, w.object, now, j.config.MaxWait)
	admission := j.sources.grace(Admission, w.object, now, j.config.MaxWait)
	return waitingTimes{audit: w.arrived.Add(audit), admission: w.arrived.Add(admission), last: w.arrived.Add(max(audit, admission))}
}
