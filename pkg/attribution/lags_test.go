// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
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
		if last, _ := facts.Lags(t.Context(), ""); last["audit"] != lag || last["admission"] != lag {
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
		if last := facts.lags[len(facts.lags)-1]; last["audit"] < 900*time.Millisecond {
			t.Errorf("stored %v after a fact that was late by a second", last)
		}
	})
}

// TestLagsAreStoredWhenTheyChange checks that lags that decrease slowly are not stored each time.
func TestLagsAreStoredWhenTheyChange(t *testing.T) {
	for _, test := range []struct {
		name            string
		measured, known Lags
		near            bool
	}{
		{"the first", Lags{"audit": time.Second}, nil, false},
		{"equal", Lags{"audit": time.Second}, Lags{"audit": time.Second}, true},
		{"a little less", Lags{"audit": 950 * time.Millisecond}, Lags{"audit": time.Second}, true},
		{"less", Lags{"audit": 800 * time.Millisecond}, Lags{"audit": time.Second}, false},
		{"more", Lags{"audit": 2 * time.Second}, Lags{"audit": time.Second}, false},
		{"another source", Lags{"audit": time.Second, "admission": 0}, Lags{"audit": time.Second}, false},
	} {
		if got := test.measured.near(test.known); got != test.near {
			t.Errorf("%s: near = %t, want %t", test.name, got, test.near)
		}
	}
}
