// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

// gather collects the current evidence about an event.
func gather(w *pendingEvent, facts *factIndex, expected *expectations) *evidence {
	e := &evidence{pending: w, times: expected.times(w)}
	if facts.empty() {
		return e
	}
	e.reviewsMissed = expected.unreviewed.has(w.object, time.Now())
	facts.gather(e)
	if time.Now().After(e.times.usual) {
		e.dropLate()
	}
	return e
}
