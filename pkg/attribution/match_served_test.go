// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// served returns an event about a rule, a kind that this server serves.
func served(object built) Event {
	event := object.event(update, "")
	event.Resource = v1alpha1.SchemeGroupVersion.WithResource("watchrules")
	return event
}

func rule(version string) built { return configMap("rule", "r", version) }

// TestStatusesOfServedKinds checks a watch that starts after a rule was written. It delivers events of the statuses that
// the server writes; the author of the rule's content is still the user who wrote it.
func TestStatusesOfServedKinds(t *testing.T) {
	const create = v1alpha1.OperationCreate
	wrote := func(user string, operation v1alpha1.Operation, version string) Fact {
		return factOf(user, Audit, operation, served(rule(version)))
	}
	tool := Author{Signal: ManagedFields, Manager: "kubectl"}
	user := func(name string) Author { return Author{Actor: Actor{Username: name}, Signal: Audit} }
	for name, tt := range map[string]struct {
		given func() (Event, []Fact)
		want  Author
	}{
		"a status of what was created": {
			func() (Event, []Fact) { return served(rule("7")), []Fact{wrote("ann", create, "5")} }, user("ann"),
		},
		"the last of several": {
			func() (Event, []Fact) {
				return served(rule("7")), []Fact{wrote("bob", update, "6"), wrote("ann", create, "5"), wrote("cid", update, "8")}
			}, user("bob"),
		},
		"one user by two signals": {
			func() (Event, []Fact) {
				named := wrote("ann", create, "5")
				nameOnly(&named)
				named.ID, named.Actor.ImpersonatedBy = "audited", "root"
				return served(rule("7")), []Fact{wrote("ann", create, "5"), named}
			}, user("ann"),
		},
		"written after the last fact": {
			func() (Event, []Fact) {
				return served(rule("7").writtenAt(time.Now().Add(time.Minute))), []Fact{wrote("ann", create, "5")}
			}, tool,
		},
		"facts of later states only": {
			func() (Event, []Fact) { return served(rule("7")), []Fact{wrote("cid", update, "8")} }, tool,
		},
		"a kind of the cluster": {
			func() (Event, []Fact) {
				event := func(version string) Event { return configMap("web", "r", version).event(update, "") }
				return event("7"), []Fact{factOf("ann", Audit, create, event("5"))}
			}, tool,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				event, facts := tt.given()
				s.Add(facts, false)
				s.submit(event)
				pass(maxWait)
				got := s.deliveries()
				if len(got) != 1 || got[0].author.Signal != tt.want.Signal || got[0].author.Username != tt.want.Username ||
					got[0].author.Manager != tt.want.Manager {
					t.Errorf("delivered %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

// TestFindServedKinds checks that a comparison finds the author of a rule in spite of later statuses. Once an event has
// reported it, a difference that a comparison finds has another cause.
func TestFindServedKinds(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{factOf("ann", Audit, v1alpha1.OperationCreate, served(rule("5")))}, false)
		if got := s.Find(served(rule("7"))); got.Username != "ann" {
			t.Errorf("author = %+v, want ann", got)
		}
		s.submit(served(rule("6")))
		if got := s.Find(served(rule("7"))); got.Username != "ann" {
			t.Errorf("while an event waits: author = %+v, want ann", got)
		}
		pass(maxWait)
		if got := s.Find(served(rule("7"))); got.Signal != Unknown {
			t.Errorf("after an event: author = %+v, want none", got)
		}
		s.Add([]Fact{factOf("bob", Audit, update, served(rule("8")))}, false)
		if got := s.Find(served(rule("9"))); got.Signal != Unknown {
			t.Errorf("after writes by two users: author = %+v, want none", got)
		}
	})
}
