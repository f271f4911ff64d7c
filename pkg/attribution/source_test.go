// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"strconv"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestSilentSources checks that no change waits for a source that has sent no facts, and that changes wait for one that has become silent:
// it may have sent none because the audit leaves out what has changed.
func TestSilentSources(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		version := 1
		delay := func() time.Duration {
			t.Helper()
			version++
			before := time.Now()
			s.submit(configMap("web", "u1", strconv.Itoa(version)).event(update, ""))
			pass(2 * maxWait)
			last := s.deliveries()[len(s.delivered)-1]
			return last.at.Sub(before)
		}
		if got := delay(); got != 0 {
			t.Errorf("wait = %s for a source that has never sent facts", got)
		}
		s.Add([]Fact{{ID: "old", Signal: Audit, Resource: "configmaps", Name: "x", Begun: time.Now().Add(-silenceTimeout)}}, true)
		if got := delay(); got != 0 {
			t.Errorf("wait = %s for a source that has sent no facts recently", got)
		}
		s.Add([]Fact{{ID: "new", Signal: Audit, Resource: "configmaps", Name: "x", Begun: time.Now()}}, false)
		pass(time.Hour)
		if got := delay(); got != maxWait {
			t.Errorf("wait = %s for a source with an unknown lag, want %s", got, maxWait)
		}
		if state := s.Sources()[0]; state.Signal != Audit || state.Lag >= 0 || state.WantedSince.IsZero() {
			t.Errorf("source = %+v", state)
		}
		pass(silenceTimeout)
		if got := delay(); got != maxWait {
			t.Errorf("wait = %s for a source that has become silent, want %s", got, maxWait)
		}
		s.Add([]Fact{{ID: "newer", Signal: Audit, Resource: "configmaps", Name: "x", Begun: time.Now()}}, false)
		if got := delay(); got != maxWait {
			t.Errorf("wait = %s for a source that sends facts again, want %s", got, maxWait)
		}
	})
}

// TestRecoveredSources checks that changes wait for a source that was active before the term began, but that recovered facts
// are not used to measure its lag.
func TestRecoveredSources(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		pass(time.Minute)
		var before []Event
		var facts []Fact
		for i := range 2 * minMeasurements {
			event := configMap("web", "u1", strconv.Itoa(i+1)).event(update, "")
			fact := factOf("ann", Audit, update, event)
			fact.ID, fact.Begun = strconv.Itoa(i), fact.Begun.Add(-time.Duration(2*minMeasurements-i)*100*time.Millisecond)
			before, facts = append(before, event), append(facts, fact)
		}
		s.Add(facts, true)
		if state := s.Sources()[0]; !state.LastFact.Equal(facts[len(facts)-1].Begun) {
			t.Errorf("source = %+v", state)
		}
		for _, event := range before {
			s.submit(event)
		}
		began := time.Now()
		late := configMap("late", "u2", "99").event(update, "")
		s.submit(late)
		pass(time.Second)
		s.Add([]Fact{factOf("bob", Audit, update, late)}, false)
		pass(maxWait)
		for _, each := range s.deliveries() {
			if want := map[string]string{"web": "ann", "late": "bob"}[each.event.Object.GetName()]; each.author.Username != want {
				t.Errorf("author of %s, %s after its change, = %q, want %s", each.event.Object.GetName(), each.at.Sub(began),
					each.author.Username, want)
			}
		}
		s.Add(facts[:1], true)
		if state := s.Sources()[0]; state.Lag != time.Second || state.LastFact.Before(began) {
			t.Errorf("source = %+v after a second recovery", state)
		}
	})
}

// TestFirstChangeWithBothSignals checks that a change that both signals report does not wait until the lag of the audit is measured.
func TestFirstChangeWithBothSignals(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		made := configMap("web", "u1", "1").event(v1alpha1.OperationCreate, "A")
		s.Add([]Fact{factOf("ann", Admission, v1alpha1.OperationCreate, made)}, false)
		s.submit(made)
		pass(2 * maxWait)
		event := configMap("web", "u1", "2").event(update, "B")
		review, audit := factOf("ann", Admission, update, event), factOf("ann", Audit, update, event)
		review.Before, review.Content = "1", "B"
		s.Add([]Fact{review}, false)
		began := time.Now()
		s.submit(event)
		s.Add([]Fact{audit}, false)
		pass(maxWait)
		got := s.deliveries()
		if len(got) != 2 || got[1].author.Username != "ann" || got[1].author.Signal != Audit || got[1].at.Sub(began) > graceMargin {
			t.Errorf("delivered %+v, want it at most %s after both facts", got, graceMargin)
		}
	})
}

// TestLists checks that the lag of a source that sends batches is their interval, even if the first ones follow soon after
// a burst.
func TestLists(t *testing.T) {
	const interval = time.Second
	for _, soon := range []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond} {
		t.Run(soon.String(), func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.Add([]Fact{{ID: "1", Signal: Audit, Resource: "configmaps", Name: "x", Begun: time.Now()}}, false)
				next := time.Now().Add(soon)
				var list []Fact
				for i := range 1000 {
					event := configMap("web", "u1", strconv.Itoa(i+1)).event(update, "")
					s.submit(event)
					list = append(list, factOf([]string{"ann", "bob"}[i%2], Audit, update, event))
					if pass(4 * time.Millisecond); !time.Now().Before(next) || i == 999 {
						s.Add(list, false)
						list, next = nil, next.Add(interval)
					}
				}
				pass(maxWait)
				got := s.deliveries()
				if len(got) != 1000 {
					t.Fatalf("%d events were delivered", len(got))
				}
				for i, each := range got {
					if want := []string{"ann", "bob"}[i%2]; each.author.Username != want {
						t.Fatalf("author of change %d = %q (%s), want %s", i, each.author.Username, each.author.Signal, want)
					}
				}
			})
		})
	}
}

// TestLagBeyondTheLimit checks that the lag is also measured for changes that were delivered long before, and not for requests that
// found the change.
func TestLagBeyondTheLimit(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(100*time.Millisecond, Audit)
		event := configMap("web", "u1", "6").event(update, "")
		fact := factOf("ann", Audit, update, event)
		s.submit(event)
		pass(30 * time.Second)
		found := factOf("bob", Audit, update, event)
		s.Add([]Fact{found}, false)
		if lag := s.Sources()[0].Lag; lag != 100*time.Millisecond {
			t.Errorf("lag = %s", lag)
		}
		s.Add([]Fact{fact}, false)
		if lag := s.Sources()[0].Lag; lag != 30*time.Second {
			t.Errorf("lag = %s", lag)
		}
	})
}

// TestFactsOfServedKinds checks that facts of this server about its own kinds delay changes of these kinds only, on a cluster
// without audit and admission.
func TestFactsOfServedKinds(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		rule := func(version string) Event {
			event := configMap("rule", "r", version).event(update, "")
			event.Resource = v1alpha1.SchemeGroupVersion.WithResource("watchrules")
			return event
		}
		s.Add([]Fact{factOf("ann", Audit, update, rule("1"))}, false)
		if state := s.Sources()[0]; !state.LastFact.IsZero() {
			t.Errorf("audit source = %+v", state)
		}
		began := time.Now()
		s.submit(configMap("web", "u1", "2").event(update, ""))
		if got := s.deliveries(); len(got) != 1 {
			t.Errorf("change waits without audit")
		}
		s.submit(rule("3"))
		pass(5 * time.Millisecond)
		s.Add([]Fact{factOf("ann", Audit, update, rule("3"))}, false)
		pass(maxWait)
		got := s.deliveries()
		if len(got) != 2 || got[1].author.Username != "ann" || got[1].author.Signal != Audit {
			t.Errorf("delivered %+v after %s", got, time.Since(began))
		}
		if state := s.Sources()[0]; state.Lag >= 0 {
			t.Errorf("audit source = %+v", state)
		}
	})
}

// TestLagOfRecordsWithoutVersion checks that a record without resourceVersion does not affect the measured lag of those with one.
func TestLagOfRecordsWithoutVersion(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Audit)
		before := s.Sources()[0].Lag
		early := configMap("web", "u1", "6").event(update, "C")
		s.Add([]Fact{factOf("ann", Audit, update, early)}, false)
		s.submit(early)
		pass(time.Second)
		named := factOf("ann", Audit, update, configMap("other", "u2", "7").event(update, ""))
		nameOnly(&named)
		named.Begun = named.Begun.Add(-500 * time.Millisecond)
		s.Add([]Fact{named}, false)
		if lag := s.Sources()[0].Lag; lag > before {
			t.Errorf("lag has grown from %s to %s", before, lag)
		}
	})
}
