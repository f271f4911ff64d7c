// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// patience is how long a source may send nothing, while there are changes, before none waits for it any more.
	patience = 30 * time.Second
	// graceMargin comes on top of what has been measured.
	graceMargin = 50 * time.Millisecond
	// lagDecay is the share of the difference by which a measurement below the maximum lowers it, once in decayInterval: so
	// that neither many measurements nor a quiet time make it forget.
	lagDecay      = 1.0 / 256
	decayInterval = time.Second
	// enough is how many measurements say something about how late facts are at most: the longest of them, half of it on
	// top, is next to never too short then for a source that tells at regular intervals of what comes at any time.
	enough = 16
	// enoughReviews is the same for admission: an API server asks before it makes a change, and makes it when it has the answer.
	enoughReviews = 1
	// apart is how long after one fact another has to come to count as another measurement. Facts that come together were
	// all late for one reason: those of a list that is sent once a second are at most as late as the burst of changes
	// before it is old.
	apart = 50 * time.Millisecond
)

// sources are all who send facts. The server itself tells of the kinds that it serves, as an audit would: at once, and on
// any cluster. How it does says nothing about the API servers' audit, for which no change shall wait where there is none.
type sources struct{ audit, served, admission source }

// of returns who sends the facts of a signal about an object; nil for what is no signal of a source.
func (s *sources) of(signal Signal, object Object) *source {
	switch {
	case signal == Admission:
		return &s.admission
	case signal != Audit:
		return nil
	case object.Group == v1alpha1.GroupName:
		return &s.served
	}
	return &s.audit
}

// heard says whether anybody has sent facts. Until then nothing is remembered.
func (s *sources) heard() bool {
	return !s.audit.lastFact.IsZero() || !s.served.lastFact.IsZero() || !s.admission.lastFact.IsZero()
}

// grace is how long after a change facts of a signal about an object may still come, as far as can be told.
func (s *sources) grace(signal Signal, object Object, now time.Time, limit time.Duration) time.Duration {
	needed := enough
	if signal == Admission {
		needed = enoughReviews
	}
	return s.of(signal, object).grace(now, needed, limit)
}

// source is what is known of one sender of facts. Times are by the clock of this process.
type source struct {
	lastFact    time.Time
	wantedSince time.Time
	// lag is a maximum that later measurements lower slowly.
	lag     time.Duration
	lowered time.Time
	// measurements are counted up to enough, and counted is when the fact came that was the last to count.
	measurements int
	counted      time.Time
}

// heard takes note that the source has sent something.
func (s *source) heard(at time.Time) {
	if at.After(s.lastFact) {
		s.lastFact = at
	}
	if !at.Before(s.wantedSince) {
		s.wantedSince = time.Time{}
	}
}

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

// measure takes note of how much later than its change a fact came, and when that was.
func (s *source) measure(lag time.Duration, arrived, now time.Time) {
	lag = max(lag, 0)
	if arrived.Sub(s.counted) >= apart {
		s.measurements, s.counted = min(s.measurements+1, enough), arrived
	}
	switch {
	case lag >= s.lag:
		s.lag, s.lowered = lag, now
	case now.Sub(s.lowered) >= decayInterval:
		s.lag, s.lowered = s.lag-time.Duration(float64(s.lag-lag)*lagDecay), now
	}
}

// grace is how long after a change facts about it may still come, or the limit while there are fewer measurements than needed.
func (s *source) grace(now time.Time, needed int, limit time.Duration) time.Duration {
	switch {
	case s.silent(now):
		return 0
	case s.measurements < needed:
		return limit
	}
	return min(limit, s.lag+s.lag/2+graceMargin)
}

func (s *source) state(signal Signal, now time.Time) SourceState {
	state := SourceState{Signal: signal, LastFact: s.lastFact, WantedSince: s.wantedSince, Lag: -1, Silent: s.silent(now)}
	if s.measurements > 0 {
		state.Lag = s.lag
	}
	return state
}
