// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// expectations has which facts are expected about events: from which sources, how late they are, and where they were
// missing. It is used under the Joiner's lock.
type expectations struct {
	// maxWait is the longest time that an event waits for facts.
	maxWait    time.Duration
	sources    sources
	arrivals   *arrivals
	unreviewed unreviewed
	unreported unreported
}

func newExpectations(maxWait time.Duration) *expectations {
	return &expectations{
		maxWait: maxWait, arrivals: newArrivals(),
		unreviewed: unreviewed{lately[Object]{}}, unreported: unreported{lately[writer]{}},
	}
}

// active reports whether any source has sent facts. Until then events are not recorded.
func (x *expectations) active() bool { return x.sources.active() }

// grace returns how long after a change facts of a signal about an object may still arrive.
func (x *expectations) grace(signal Signal, object Object, now time.Time) time.Duration {
	return x.sources.grace(signal, object, now, x.maxWait)
}

// times returns the times until which an event waits for facts. Measurements since the event arrived are included.
func (x *expectations) times(w *pendingEvent) waitingTimes {
	now := time.Now()
	if !x.active() && !x.sources.audit.used(now) {
		return waitingTimes{w.arrived, w.arrived, w.arrived, w.arrived, w.arrived}
	}
	audit, admission := x.grace(Audit, w.object, now), x.grace(Admission, w.object, now)
	last := max(audit, admission)
	usual := last
	if audit > 0 && x.sources.behind(w.object, w.arrived) {
		usual = max(last, min(now.Sub(w.arrived)+audit, x.maxWait))
	}
	unknown := usual
	if w.isReportExpected || x.sources.quiet(w.object, now) {
		unknown = x.maxWait
	}
	after := w.arrived.Add
	if w.usual.IsZero() || !now.After(w.usual) { // A fact that comes later would count as usual by its own lag.
		w.usual = after(usual)
	}
	return waitingTimes{audit: after(audit), admission: after(admission), last: after(last), usual: w.usual, unknown: after(unknown)}
}

// expectsReport reports whether the API servers' audit is expected to report a change of an object.
func (x *expectations) expectsReport(object Object, by writing, now time.Time) bool {
	return x.maxWait > 0 && x.sources.of(Audit, object) == &x.sources.audit && x.sources.audit.used(now) && x.unreported.expects(by, now)
}

// eventArrived records an event, which is expected to be followed by facts.
func (x *expectations) eventArrived(w *pendingEvent) {
	for _, signal := range []Signal{Audit, Admission} {
		x.sources.of(signal, w.object).wanted(w.arrived)
	}
}

// factArrived measures how late a fact is, if it is the first one about a change that has arrived before.
func (x *expectations) factArrived(fact *Fact, from *source, now time.Time, recovered bool) {
	lag, ok := x.arrivals.lag(fact, now)
	if ok && !recovered && fact.Operation != v1alpha1.OperationDelete {
		from.measure(lag, now, now)
	}
}

// expect makes factArrived measure how late facts about an event are. Facts in its evidence are not late.
func (x *expectations) expect(w *pendingEvent, e *evidence) {
	if w.event.Operation == v1alpha1.OperationDelete || !x.active() {
		return
	}
	var missing arrival
	if len(e.exact) > 0 {
		x.measureEarly(e.exact[0], w)
	} else {
		missing.after = w.state
	}
	attempts := e.attemptsSince(w.unchangedSince)
	switch {
	case !w.startKnown():
	case len(attempts) > 0:
		x.measureEarly(attempts[0], w)
	case w.known:
		missing.before = revision{w.state.uid, w.predecessor}
	default:
		missing.before = revision{w.state.uid, anyVersion}
	}
	x.arrivals.add(w.arrived, missing)
}

// measureEarly records a fact that arrived before its event.
func (x *expectations) measureEarly(fact *storedFact, w *pendingEvent) {
	if !fact.recovered {
		x.sources.of(fact.Signal, w.object).measure(0, fact.arrived, w.arrived)
	}
}

// measure records the lag of the fact that an event was delivered with.
func (x *expectations) measure(w *pendingEvent, fact *storedFact, now time.Time) {
	x.sources.of(fact.Signal, w.object).measure(fact.arrived.Sub(w.arrived), fact.arrived, now)
}

// expected reports whether expect makes the lag of a fact measured.
func (w *pendingEvent) expected(fact *storedFact) bool {
	switch {
	case w.event.Operation == v1alpha1.OperationDelete:
		return false
	case fact.Signal == Audit:
		return fact.UID != "" && fact.After != ""
	}
	return w.startKnown()
}

// measurable reports whether to measure the lag of the fact that an event is delivered with: its states are not known, so
// that expect does not make it measured.
func (w *pendingEvent) measurable(fact *storedFact) bool {
	_, delayed := deletionRequestedAt(w.event.Object)
	return !fact.recovered && !w.expected(fact) && !delayed
}

// startKnown reports whether the state that the change started from is known, or the object had a single state for some
// time.
func (w *pendingEvent) startKnown() bool { return w.known || !w.unchangedSince.IsZero() }
