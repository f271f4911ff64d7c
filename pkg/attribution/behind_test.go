// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestAuditBehind checks that a change without a known author waits for audit events that are later than all measured
// ones, at most for the maximum. If the last change of its writer was not reported either, it waits only as long as the
// audit has reported nothing that was completed later.
func TestAuditBehind(t *testing.T) {
	const (
		lag     = time.Second
		grace   = lag + lag/2 + graceMargin
		longest = 30 * time.Second
	)
	// other is about a request that another user has completed.
	other := func() Fact { return factOf("bob", Audit, update, configMap("other", "u2", "3").event(update, "")) }
	for name, tt := range map[string]struct {
		// late adds facts after the change, and from is the fact of the request that made the change.
		late func(s *fixture, from Fact)
		// missed is set if the last change of the writer was not reported.
		missed bool
		want   string
		// waits is how long a change without an author waits.
		waits time.Duration
	}{
		"all events held up": {
			late: func(s *fixture, from Fact) {
				pass(3 * grace)
				s.Add([]Fact{from}, false)
			},
			missed: true,
			want:   "carol",
		},
		"held up after events of earlier requests": {
			late: func(s *fixture, from Fact) {
				earlier := other()
				earlier.Ended = from.Ended.Add(-time.Millisecond)
				pass(lag)
				s.Add([]Fact{earlier}, false)
				pass(lag)
				s.Add([]Fact{from}, false)
			},
			missed: true,
			want:   "carol",
		},
		"held up alone": {
			late: func(s *fixture, from Fact) {
				pass(lag)
				s.Add([]Fact{other()}, false)
				pass(3 * grace)
				s.Add([]Fact{from}, false)
			},
			want: "carol",
		},
		"not reported, but a later request": {
			late: func(s *fixture, _ Fact) {
				pass(lag)
				s.Add([]Fact{other()}, false)
			},
			waits: longest,
		},
		"not reported again, but a later request": {
			late: func(s *fixture, _ Fact) {
				pass(lag)
				s.Add([]Fact{other()}, false)
			},
			missed: true,
			waits:  grace,
		},
		"not reported again, but a later request some time after": {
			late: func(s *fixture, _ Fact) {
				pass(grace + lag)
				s.Add([]Fact{other()}, false)
			},
			missed: true,
			waits:  2 * grace,
		},
		"nothing reported":       {late: func(*fixture, Fact) {}, waits: longest},
		"nothing reported again": {late: func(*fixture, Fact) {}, missed: true, waits: longest},
	} {
		for _, operation := range []v1alpha1.Operation{update, deleted} {
			t.Run(name+", "+string(operation), func(t *testing.T) {
				inBubble(t, Config{MaxWait: longest}, func(t *testing.T, s *fixture) {
					s.wake(lag, Audit)
					if tt.missed {
						s.submit(configMap("before", "u0", "5").event(operation, ""))
						pass(longest - lag) // A source that has sent nothing for 30 s is not waited for.
						s.Add([]Fact{other()}, false)
						pass(lag)
					}
					event := configMap("web", "u1", "6").event(operation, "")
					from := factOf("carol", Audit, operation, event)
					from.Begun, from.Ended = from.Begun.Add(-2*time.Millisecond), time.Now()
					pass(time.Millisecond)
					s.submit(event)
					tt.late(s, from)
					pass(2 * longest)
					got := s.deliveries()
					if tt.missed {
						got = got[1:]
					}
					if len(got) != 1 {
						t.Fatalf("%d events were delivered", len(got))
					}
					author, waited := got[0].author, got[0].at.Sub(got[0].submitted)
					if author.Username != tt.want || !author.Known() && waited != tt.waits {
						t.Errorf("delivered %+v after %s, want %q after %s", author, waited, tt.want, tt.waits)
					}
				})
			})
		}
	}
}
