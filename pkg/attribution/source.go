// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

const (
	// patience is how long a source may send nothing, while there are changes, before none waits for it any more.
	patience = 30 * time.Second
	// graceMargin comes on top of what has been measured.
	graceMargin = 50 * time.Millisecond
	// lagDecay is the share of the difference by which a measurement below the maximum lowers it.
	lagDecay = 1.0 / 256
)

// source is what is known of one sender of facts. Times are by the clock of this process.
type source struct {
	lastFact    time.Time
	wantedSince time.Time
	// lag is a maximum that later measurements lower slowly.
	lag      time.Duration
	measured bool
}

// heard takes note that the source has sent something.
func (s *source) heard(now time.Time) { s.lastFact, s.wantedSince = now, time.Time{} }

// wanted takes note of a change.
func (s *source) wanted(now time.Time) {
	if s.wantedSince.IsZero() {
		s.wantedSince = now
	}
}

// silent says that nothing is to be expected of the source until it sends again.
func (s *source) silent(now time.Time) bool {
	return s.lastFact.IsZero() || !s.wantedSince.IsZero() && now.Sub(s.wantedSince) >= patience
}

// measure takes note of how much later than its change a fact came.
func (s *source) measure(lag time.Duration) {
	lag = max(lag, 0)
	if s.measured {
		lag = max(lag, s.lag-time.Duration(float64(s.lag-lag)*lagDecay))
	}
	s.lag, s.measured = lag, true
}

// grace is how long a change about which there is no fact waits for one.
func (s *source) grace(now time.Time, limit time.Duration) time.Duration {
	switch {
	case s.silent(now):
		return 0
	case !s.measured:
		return limit
	}
	return min(limit, s.lag+s.lag/2+graceMargin)
}

// settling is how long after a change another fact about it may still come, as far as has been measured. Unlike the grace
// it has no margin: facts that always precede their changes let nothing wait.
func (s *source) settling(now time.Time, limit time.Duration) time.Duration {
	if !s.measured {
		return s.grace(now, limit)
	}
	return min(s.grace(now, limit), s.lag+s.lag/2)
}

func (s *source) state(signal Signal, now time.Time) SourceState {
	state := SourceState{Signal: signal, LastFact: s.lastFact, WantedSince: s.wantedSince, Lag: -1, Silent: s.silent(now)}
	if s.measured {
		state.Lag = s.lag
	}
	return state
}
