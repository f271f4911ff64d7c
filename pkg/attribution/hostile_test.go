// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestForgedFacts checks that contradicting facts name no author and are counted.
func TestForgedFacts(t *testing.T) {
	cases := map[string][]testFact{
		"two audits":                {audited("ann"), audited("eve")},
		"audit against admission":   {audited("eve"), attempted("ann", from("5", "C"))},
		"admission against another": {attempted("ann", from("5", "C")), attempted("eve", from("5", "C"))},
		"three":                     {audited("ann"), audited("eve"), attempted("mallory", from("5", "C"))},
	}
	for name, facts := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(20*time.Millisecond, Audit, Admission)
				s.Observe(configMap("web", "u1", "5").event(update, ""))
				before := contradictionsSoFar(t)
				s.checkAll(t, configMap("web", "u1", "6").event(update, "C"), facts, "", Unknown)
				if got := contradictionsSoFar(t) - before; got != 1 {
					t.Errorf("contradictions increased by %v, want 1", got)
				}
			})
		})
	}
}

// TestFlood checks that memory is bounded and that the oldest facts of the namespace with the most facts are dropped.
func TestFlood(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		event := configMap("web", "u1", "6").event(update, "")
		lasts := factOf("ann", Audit, deleted, configMap("storedFact", "u2", "6").event(deleted, ""))
		lasts.Lasting = true
		s.Add([]Fact{factOf("ann", Audit, update, event), lasts}, false)
		const flood = 20 * factsLimit
		for i := range flood {
			name := fmt.Sprintf("object-%d", i)
			s.Add([]Fact{{
				ID: name, Signal: Signal([...]string{"audit", "admission"}[i%2]), Operation: [...]v1alpha1.Operation{create, update, deleted}[i%3],
				Resource: "configmaps", Namespace: fmt.Sprintf("flood-%d", i%3), Name: name, UID: types.UID(name), After: "1", Content: "C",
				Lasting: i%7 == 0, Begun: time.Now(), Actor: Actor{Username: "eve"},
			}}, false)
		}
		for _, each := range []*store{s.facts.recent, s.facts.lasting} {
			if len(each.ids) > factsLimit {
				t.Errorf("%d stored facts exceed the limit", len(each.ids))
			}
			inIndexes, inNamespaces := 0, 0
			for _, facts := range each.ofUID {
				inIndexes += len(facts)
			}
			for _, of := range each.namespaces {
				inNamespaces += of.facts.Len()
			}
			if inIndexes > len(each.ids) || inNamespaces != len(each.ids) || len(each.after) > len(each.ids) || len(each.ofName) > len(each.ids) {
				t.Errorf("%d facts, %d in the index, %d in namespaces", len(each.ids), inIndexes, inNamespaces)
			}
		}
		if len(s.queues.byObject)+len(s.queues.due) != 0 || len(s.expected.arrivals.order) != 0 {
			t.Error("facts without events use memory for waiting events")
		}
		s.submit(event)
		s.submit(configMap("storedFact", "u2", "7").event(deleted, ""))
		pass(2 * maxWait)
		for _, each := range s.deliveries() {
			if each.author.Username != "ann" {
				t.Errorf("author of %s = %q", each.event.Object.GetName(), each.author.Username)
			}
		}
		pass(2 * time.Minute)
		if len(s.facts.recent.ids)+len(s.facts.recent.after)+len(s.facts.recent.before)+len(s.facts.recent.ofUID)+len(s.facts.recent.ofName)+len(s.facts.recent.namespaces) != 0 {
			t.Error("expired facts are still stored")
		}
	})
}

// TestManyObjects checks that events without facts use bounded memory, too.
func TestManyObjects(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{{ID: "1", Signal: Audit, Resource: "configmaps", Name: "x"}}, false)
		pass(time.Hour)
		s.submit(configMap("first", "first", "1").event(create, ""))
		pass(silenceTimeout)
		for i := range 2*versionHistoryLimit + 1 {
			name := fmt.Sprintf("object-%d", i)
			s.submit(configMap(name, name, "1").event(create, ""))
		}
		pass(2 * maxWait)
		if got := len(s.observed.versions.young) + len(s.observed.versions.old); got > 2*versionHistoryLimit {
			t.Errorf("version history has %d objects", got)
		}
		if a := s.expected.arrivals; len(a.order) > arrivalsLimit || len(a.after) > arrivalsLimit || len(a.before) > arrivalsLimit {
			t.Errorf("%d changes are stored", len(a.after))
		}
		if got := len(s.deliveries()); got != 2*versionHistoryLimit+2 {
			t.Errorf("%d events were delivered", got)
		}
	})
}

// TestMalformedFacts checks facts and objects with arbitrary content.
func TestMalformedFacts(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{{}, {Signal: "gossip"}, {Signal: Audit, Operation: "LIST"}, {Signal: Admission, Replicas: new(int64)}}, false)
		odd := []Fact{
			factOf("eve", Audit, deleted, configMap("web", "u1", "6").event(deleted, "")),
			factOf("eve", Audit, deleted, configMap("web", "u1", "6").event(deleted, "")),
		}
		odd[0].After, odd[1].After = "not a number", "6"
		odd[1].Actor.Username, odd[1].ID = "ann", "another"
		s.Add(odd, false)
		s.submit(configMap("web", "u1", "6").event(deleted, ""))
		bad := configMap("bad", "u2", "1").with("yesterday", "metadata", "deletionTimestamp").with("none", "metadata", "managedFields")
		s.submit(bad.event(update, ""))
		s.submit(bad.event(deleted, ""))
		s.submit(Event{Operation: update, Resource: configMaps, Object: configMap("nothing", "", "").Object})
		pass(2 * maxWait)
		for _, each := range s.deliveries() {
			if each.author.Known() {
				t.Errorf("author of %s = %q", each.event.Object.GetName(), each.author.Username)
			}
		}
	})
}

// TestImpersonatorWithoutChange checks that an impersonator who changes nothing is not the author of the user's change.
func TestImpersonatorWithoutChange(t *testing.T) {
	impersonated := func(f *Fact) { f.Actor.ImpersonatedBy = "eve" }
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Audit)
		event := configMap("web", "u1", "6").event(update, "C")
		late := factOf("ann", Audit, update, event)
		late.Begun, late.Ended, late.ID = late.Begun.Add(20*time.Millisecond), late.Ended.Add(20*time.Millisecond), "late"
		impersonated(&late)
		s.Add([]Fact{late, factOf("ann", Audit, update, event)}, false)
		s.submit(event)
		pass(maxWait)
		got := s.deliveries()
		if len(got) != 1 || got[0].author.ImpersonatedBy != "" || got[0].author.Username != "ann" {
			t.Errorf("delivered %+v", got)
		}
	})
}

// TestForgedReviewBeforeTheAudit checks that a forged review before the audit does not name an author if the real review arrived, too,
// or if audit facts have shown that reviews are missing.
func TestForgedReviewBeforeTheAudit(t *testing.T) {
	genuine := func(r *reviewed) { r.review("ann") }
	forged := func(r *reviewed) { r.review("eve") }
	cases := map[string]struct {
		before []func(*reviewed)
		want   string
	}{
		"beside the real one": {before: []func(*reviewed){genuine, forged}, want: "ann"},
		"beside the real one, before the watch": {before: []func(*reviewed){
			genuine, func(r *reviewed) { r.Listed(configMaps, "") }, forged,
		}, want: "ann"},
		"where reviews are lost": {before: []func(*reviewed){func(r *reviewed) { r.unreviewedChange("shop") }, forged}},
		"of an older state":      {before: []func(*reviewed){func(r *reviewed) { r.review("eve", from("4", "C")) }, genuine}, want: "ann"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(0, Admission)
				s.wake(auditLag, Audit)
				s.Listed(configMaps, "")
				r := &reviewed{fixture: s, event: configMap("web", "u1", "6").event(update, "C")}
				for _, step := range c.before {
					step(r)
				}
				s.resetDeliveries()
				s.submit(r.event)
				pass(auditLag)
				s.Add([]Fact{factOf("ann", Audit, update, r.event)}, false)
				pass(maxWait)
				if got := s.deliveries(); len(got) != 1 || got[0].author.Username != c.want {
					t.Errorf("delivered %+v, want %q", got, c.want)
				}
			})
		})
	}
}
