// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestLaterRequests has changes that no signal reports, and that wait for a report as long as they may. Meanwhile other requests for the same
// are reported, which must not be named as their authors.
func TestLaterRequests(t *testing.T) {
	const lag = 200 * time.Millisecond
	for name, tt := range map[string]struct {
		operation v1alpha1.Operation
		// later returns the fact about a request 900 ms after the change, and late is set if it is about the change after all.
		later func(change Event) Fact
		late  bool
	}{
		"deletion of a collection": {operation: deleted, later: func(change Event) Fact {
			fact := factOf("bob", Audit, deleted, change)
			fact.UID, fact.Name, fact.Collection = "", "", &Collection{}
			return fact
		}},
		"a deletion of a large collection that began with the change": {late: true, operation: deleted, later: func(change Event) Fact {
			fact := factOf("bob", Audit, deleted, change)
			fact.UID, fact.Name, fact.Collection = "", "", &Collection{}
			fact.Begun = fact.Begun.Add(-900 * time.Millisecond)
			return fact
		}},
		"a deletion of a large collection that began later": {operation: deleted, later: func(change Event) Fact {
			fact := factOf("bob", Audit, deleted, change)
			fact.UID, fact.Name, fact.Collection = "", "", &Collection{}
			fact.Begun = fact.Begun.Add(-500 * time.Millisecond)
			return fact
		}},
		"a fact without uid": {operation: update, later: func(change Event) Fact {
			fact := factOf("bob", Audit, update, change)
			nameOnly(&fact)
			return fact
		}},
		"a deletion of a collection by an API server whose clock is behind": {operation: deleted, later: func(change Event) Fact {
			fact := factOf("bob", Audit, deleted, change)
			fact.UID, fact.Name, fact.Collection = "", "", &Collection{}
			fact.Begun, fact.Ended = fact.Begun.Add(-950*time.Millisecond), fact.Ended.Add(-950*time.Millisecond)
			return fact
		}},
		"a fact without uid of an API server whose clock is behind": {operation: update, later: func(change Event) Fact {
			fact := factOf("bob", Audit, update, change)
			nameOnly(&fact)
			fact.Begun, fact.Ended = fact.Begun.Add(-950*time.Millisecond), fact.Ended.Add(-950*time.Millisecond)
			return fact
		}},
		"a review": {operation: update, later: func(change Event) Fact {
			fact := factOf("bob", Admission, update, change)
			fact.Before, fact.Content = "5", "C"
			return fact
		}},
		"a fact without uid about a long request": {late: true, operation: update, later: func(change Event) Fact {
			fact := factOf("bob", Audit, update, change)
			nameOnly(&fact)
			fact.Begun = fact.Begun.Add(-900*time.Millisecond - clockSkew)
			return fact
		}},
		"a fact about the change": {late: true, operation: update, later: func(change Event) Fact {
			return factOf("bob", Audit, update, change)
		}},
		"a fact about the deletion": {late: true, operation: deleted, later: func(change Event) Fact {
			return factOf("bob", Audit, deleted, change)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(lag, Audit, Admission)
				before := configMap("web", "u1", "5").event(create, "B")
				s.Add([]Fact{factOf("ann", Admission, create, before), factOf("ann", Audit, create, before)}, false)
				s.submit(before)
				pass(20 * time.Second)
				s.resetDeliveries()
				pass(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // All is in one second.
				change := configMap("web", "u1", "6").event(tt.operation, "C")
				s.submit(change)
				pass(50 * time.Millisecond)
				s.Add([]Fact{factOf("carol", Audit, update, configMap("other", "u2", "9").event(update, ""))}, false)
				pass(850 * time.Millisecond)
				s.Add([]Fact{tt.later(change)}, false)
				pass(2 * maxWait)
				want := map[bool]string{true: "bob"}[tt.late]
				if got := s.deliveries(); len(got) != 1 || got[0].author.Username != want {
					t.Errorf("delivered %+v, want the author %q", got, want)
				}
			})
		})
	}
}
