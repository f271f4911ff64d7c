// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// silenceTimeout is how long a source may send nothing in spite of changes before they no longer wait for it.
	silenceTimeout = 30 * time.Second
	// useLifetime is how long after its last fact the audit counts as used by the server when it starts, so that the first change after a quiet
	// weekend waits for its report.
	useLifetime = 7 * 24 * time.Hour
	// graceMargin is added to the measured lag.
	graceMargin = 50 * time.Millisecond
	// lagDecay is the share of the difference by which a measurement below the maximum lowers the maximum, at most once
	// in decayInterval, so that neither many measurements nor a quiet period make it drop quickly.
	lagDecay      = 1.0 / 256
	decayInterval = time.Second
	// minMeasurements is the number of measurements needed to estimate the maximum lag. For a source that sends at
	// regular intervals while changes occur at any time, 1.5 times the longest of that many is almost never too short.
	minMeasurements = 16
	// minReviewMeasurements is the same for admission: an API server makes a change only after it has the response to the
	// review.
	minReviewMeasurements = 1
	// measurementGap is the minimum time between two facts that count as separate measurements. Facts that arrive
	// together are late for the same reason: in a list that is sent once a second, they are at most as late as the burst
	// of changes before it is old.
	measurementGap = 50 * time.Millisecond
)

// sources are the sources of facts. served is this server itself, which reports changes of its own kinds like an audit,
// immediately and on any cluster. Its lag and activity say nothing about the API servers' audit, for which no change must
// wait if it is not configured.
type sources struct{ audit, served, admission source }

// of returns the source of a signal about an object; nil for other signals.
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

// active reports whether any source has sent facts. Until then events are not recorded.
func (s *sources) active() bool {
	return !s.audit.lastFact.IsZero() || !s.served.lastFact.IsZero() || !s.admission.lastFact.IsZero()
}

// grace returns how long after a change facts of a signal about an object may still arrive, as far as measured.
func (s *sources) grace(signal Signal, object Object, now time.Time, limit time.Duration) time.Duration {
	from := s.of(signal, object)
	return from.grace(now, s.needed(from), limit)
}

// needed returns the number of measurements that a source needs.
func (s *sources) needed(of *source) int {
	if of == &s.admission {
		return minReviewMeasurements
	}
	return minMeasurements
}

// behind reports whether the API servers' audit has reported no request that was completed after a change arrived. Audit
// events are sent approximately in the order in which requests are completed, so that about the change is then still to
// come, or held up.
func (s *sources) behind(object Object, arrived time.Time) bool {
	return s.of(Audit, object) == &s.audit && s.audit.reported.Before(arrived)
}

// quiet reports whether the API servers' audit is in use and has sent nothing for so long that it counts as silent. That is usual where
// little happens but changes that the audit policy leaves out, so that a report may still follow.
func (s *sources) quiet(object Object, now time.Time) bool {
	return s.of(Audit, object) == &s.audit && s.audit.used(now) && s.audit.silent(now)
}

// states returns the state of the API servers' audit and admission.
func (s *sources) states(now time.Time) []SourceState {
	return []SourceState{s.audit.state(Audit), s.admission.state(Admission)}
}

// source is the state of one source of facts. Times are by the clock of this process.
type source struct {
	lastFact    time.Time
	wantedSince time.Time
	// lastFactBefore is when the last fact of the earlier terms arrived, if that is known.
	lastFactBefore time.Time
	// reported is when the last of the reported requests was completed, by the API server's clock.
	reported time.Time
	// lag is a maximum that later measurements lower slowly.
	lag     time.Duration
	lowered time.Time
	// resumed is the lag that an earlier term has measured. It is nil if there is none, or a later fact has disproved it.
	resumed *time.Duration
	// measurements is counted up to minMeasurements; counted is when the last counted fact arrived.
	measurements int
	counted      time.Time
}

// received records that a fact arrived about a request that was completed at a time.
func (s *source) received(at, completed time.Time) {
	if at.After(s.lastFact) {
		s.lastFact = at
	}
	if completed.After(s.reported) {
		s.reported = completed
	}
	if !at.Before(s.wantedSince) {
		s.wantedSince = time.Time{}
	}
}

// wanted records a change, which is expected to be followed by a fact.
func (s *source) wanted(now time.Time) {
	if s.wantedSince.IsZero() {
		s.wantedSince = now
	}
}

// used reports whether the source has sent facts in this term, or lately in an earlier one.
func (s *source) used(now time.Time) bool {
	return !s.lastFact.IsZero() || !s.lastFactBefore.IsZero() && now.Sub(s.lastFactBefore) < useLifetime
}

// silent reports whether no facts are expected until the source sends again.
func (s *source) silent(now time.Time) bool {
	return s.lastFact.IsZero() || !s.wantedSince.IsZero() && now.Sub(s.wantedSince) >= silenceTimeout
}

// measure records how much later than its change a fact arrived, and when.
func (s *source) measure(lag time.Duration, arrived, now time.Time) {
	lag = max(lag, 0)
	if arrived.Sub(s.counted) >= measurementGap {
		s.measurements, s.counted = min(s.measurements+1, minMeasurements), arrived
	}
	if s.resumed != nil && lag > graceOf(*s.resumed) {
		s.resumed = nil
	}
	switch {
	case lag >= s.lag:
		s.lag, s.lowered = lag, now
	case now.Sub(s.lowered) >= decayInterval:
		s.lag, s.lowered = s.lag-time.Duration(float64(s.lag-lag)*lagDecay), now
	}
}

// grace returns how long after a change facts about it may still arrive. If there are fewer measurements than needed, that is what an earlier
// term has measured, or else the limit.
func (s *source) grace(now time.Time, needed int, limit time.Duration) time.Duration {
	switch {
	case s.silent(now):
		return 0
	case s.measurements >= needed:
		return min(limit, graceOf(s.lag))
	case s.resumed != nil:
		return min(limit, graceOf(min(*s.resumed, limit)))
	default:
		return limit
	}
}

// graceOf returns how long after a change a fact may arrive from a source with a lag.
func graceOf(lag time.Duration) time.Duration { return lag + lag/2 + graceMargin }

func (s *source) state(signal Signal) SourceState {
	state := SourceState{Signal: signal, LastFact: s.lastFact, WantedSince: s.wantedSince, Lag: -1}
	if s.measurements > 0 {
		state.Lag = s.lag
	}
	return state
}
