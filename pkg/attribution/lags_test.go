// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// term runs a Joiner that starts and follows the facts of a log. It returns when it has ended.
func term(t *testing.T, facts *log, during func(s *fixture)) {
	t.Helper()
	s := &fixture{Joiner: NewJoiner(Config{MaxWait: maxWait, Facts: facts}), t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var group wait.Group
	s.Start(ctx, &group)
	during(s)
	cancel()
	group.Wait()
}

// TestLagsOfTheEarlierTerm checks that a Joiner waits from its start for as long as the one before it has measured, and that a longer lag
// than that is measured.
func TestLagsOfTheEarlierTerm(t *testing.T) {
	const lag = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		facts := &log{failures: 1}
		term(t, facts, func(s *fixture) {
			s.wake(lag, Audit, Admission)
			pass(2 * lagsInterval)
		})
		if last, _ := facts.Lags(t.Context(), ""); last.Sources["audit"] != lag || last.Sources["admission"] != lag {
			t.Fatalf("stored %v, want the lag %s of both, although the first attempt failed", facts.lags, lag)
		}
		unnamed := configMap("web", "u1", "1").event(update, "")
		facts.facts = []Fact{factOf("ann", Audit, update, unnamed)}
		term(t, facts, func(s *fixture) {
			named := configMap("web", "u2", "2").event(update, "")
			began := time.Now()
			s.submit(named)
			s.Add([]Fact{factOf("bob", Audit, update, named)}, false)
			pass(maxWait)
			if got := s.deliveries(); len(got) != 1 || got[0].author.Username != "bob" || got[0].at.Sub(began) > 2*lag {
				t.Errorf("delivered %+v, want bob's change after less than %s", got, 2*lag)
			}
			slow := configMap("web", "u3", "3").event(update, "")
			s.submit(slow)
			pass(time.Second)
			s.Add([]Fact{factOf("bob", Audit, update, slow)}, false)
			pass(lagsInterval)
		})
		if last := facts.lags[len(facts.lags)-1]; last.Sources["audit"] != 0 || last.Sources["admission"] != lag {
			t.Errorf("stored %v after an audit event that was late by a second, want only the lag of admission", last)
		}
	})
}

// TestStoredLagsAreDisproved stores a lag that is shorter than that of the source, or too old. Changes wait as if there were none: until a fact
// has been too late for it, or from the start.
func TestStoredLagsAreDisproved(t *testing.T) {
	for name, age := range map[string]time.Duration{"shorter": time.Minute, "old": lagsLifetime + time.Second, "of the future": -2 * lagsLifetime} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stored := Lags{Stored: time.Now().Add(-age), Sources: map[string]time.Duration{"audit": 10 * time.Millisecond}}
				recent := factOf("ann", Audit, update, configMap("other", "u0", "1").event(update, ""))
				term(t, &log{facts: []Fact{recent}, lags: []Lags{stored}}, func(s *fixture) {
					if state := s.Sources()[0]; state.Lag >= 0 {
						t.Errorf("lag = %s before anything is measured", state.Lag)
					}
					change := func(version int) time.Duration {
						t.Helper()
						event := configMap("web", "u1", fmt.Sprint(version)).event(update, "")
						began := time.Now()
						s.submit(event)
						pass(time.Second)
						s.Add([]Fact{factOf("bob", Audit, update, event)}, false)
						pass(maxWait)
						delivered := s.deliveries()
						return delivered[len(delivered)-1].at.Sub(began)
					}
					change(1)
					for version := range 5 {
						if got := change(version + 2); got != maxWait {
							t.Errorf("wait = %s with an audit that was late by a second %d times, want %s", got, version+1, maxWait)
						}
					}
				})
			})
		})
	}
}

// TestLagsAreStoredWhenTheyChange checks that lags that decrease slowly are not stored each time.
func TestLagsAreStoredWhenTheyChange(t *testing.T) {
	began := time.Now()
	of := func(after time.Duration, sources map[string]time.Duration) Lags {
		return Lags{Stored: began.Add(after), Sources: sources}
	}
	second := of(0, map[string]time.Duration{"audit": time.Second})
	for _, test := range []struct {
		name            string
		measured, known Lags
		near            bool
	}{
		{"the first", second, Lags{}, false},
		{"equal", of(lagsInterval, second.Sources), second, true},
		{"equal to old ones", of(lagsRefresh, second.Sources), second, false},
		{"a little less", of(0, map[string]time.Duration{"audit": 950 * time.Millisecond}), second, true},
		{"less", of(0, map[string]time.Duration{"audit": 800 * time.Millisecond}), second, false},
		{"more", of(0, map[string]time.Duration{"audit": 2 * time.Second}), second, false},
		{"short ones", of(0, map[string]time.Duration{"audit": 9 * time.Millisecond}), of(0, map[string]time.Duration{"audit": 0}), true},
		{"another source", of(0, map[string]time.Duration{"audit": time.Second, "admission": 0}), second, false},
	} {
		if got := test.measured.near(test.known); got != test.near {
			t.Errorf("%s: near = %t, want %t", test.name, got, test.near)
		}
	}
}
