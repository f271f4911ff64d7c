// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// wrote returns a fact about a write of an object that ends now.
func (s *fixture) wrote(user, version string, change ...func(*Fact)) {
	fact := factOf(user, Audit, update, configMap("web", "u1", version).event(update, ""))
	fact.ID = user + " " + version
	for _, change := range change {
		change(&fact)
	}
	s.Add([]Fact{fact}, false)
}

// managed returns an object of a version that managers have written, each at the given age.
func managed(version string, managers map[string]time.Duration) Event {
	object := configMap("web", "u1", version)
	var entries []any
	for manager, ago := range managers {
		entry := map[string]any{"manager": manager, "operation": "Update", "time": time.Now().Add(-ago).UTC().Format(time.RFC3339)}
		if manager == "status" {
			entry["subresource"] = "status"
		}
		entries = append(entries, entry)
	}
	_ = unstructured.SetNestedSlice(object.Object.Object, entries, "metadata", "managedFields")
	return object.event(update, "")
}

func TestFindSince(t *testing.T) {
	const long, known, lately = time.Hour, 40 * time.Second, 10 * time.Second
	for name, test := range map[string]struct {
		// early adds facts before since, facts adds later ones.
		early, facts func(s *fixture)
		version      string
		managers     map[string]time.Duration
		want         string
	}{
		"one user": {
			facts: func(s *fixture) { s.wrote("ann", "6") }, version: "6", managers: map[string]time.Duration{"kubectl": lately}, want: "ann"},
		"and a status since": {
			facts:   func(s *fixture) { s.wrote("ann", "6") },
			version: "9", managers: map[string]time.Duration{"kubectl": lately, "status": 0}, want: "ann"},
		"and others before": {
			early: func(s *fixture) { s.wrote("bob", "5") }, facts: func(s *fixture) { s.wrote("ann", "6") },
			version: "6", managers: map[string]time.Duration{"kubectl": lately, "apply": known + 10*time.Second, "create": long}, want: "ann"},
		"one user twice": {
			facts: func(s *fixture) { s.wrote("ann", "6"); s.wrote("ann", "7") }, version: "8",
			managers: map[string]time.Duration{"kubectl": lately}, want: "ann"},
		"a Secret, audited without its version": {
			facts: func(s *fixture) { s.wrote("ann", "6", nameOnly) }, version: "6", managers: map[string]time.Duration{"kubectl": lately}, want: "ann"},
		"a Secret, by another user before": {
			early: func(s *fixture) { s.wrote("bob", "5", nameOnly) }, facts: func(s *fixture) { s.wrote("ann", "6", nameOnly) },
			version: "6", managers: map[string]time.Duration{"kubectl": lately}, want: "ann"},
		"a Secret, by several users": {
			facts:   func(s *fixture) { s.wrote("ann", "6", nameOnly); s.wrote("bob", "7", nameOnly) },
			version: "7", managers: map[string]time.Duration{"kubectl": lately}},
		"a Secret, also by a user who is not audited": {
			facts:   func(s *fixture) { s.wrote("ann", "6", nameOnly) },
			version: "7", managers: map[string]time.Duration{"kubectl": lately, "other": lately - 5*time.Second}},
		"several users": {
			facts: func(s *fixture) { s.wrote("ann", "6"); s.wrote("bob", "7") }, version: "7",
			managers: map[string]time.Duration{"kubectl": lately}},
		"an impersonated user": {
			facts: func(s *fixture) {
				s.wrote("ann", "6")
				s.wrote("ann", "7", func(f *Fact) { f.Actor.ImpersonatedBy = "ci" })
			}, version: "7", managers: map[string]time.Duration{"kubectl": lately}},
		"a manager without an audit fact": {
			facts: func(s *fixture) { s.wrote("ann", "6") }, version: "7",
			managers: map[string]time.Duration{"kubectl": lately, "edit": 20 * time.Second}},
		"a later manager without an audit fact": {
			facts: func(s *fixture) { s.wrote("ann", "6") }, version: "7",
			managers: map[string]time.Duration{"kubectl": lately, "edit": 5 * time.Second}},
		"a fact of a later version": {
			facts: func(s *fixture) { s.wrote("ann", "7") }, version: "6", managers: map[string]time.Duration{"kubectl": lately}},
		"a no-op request": {
			facts: func(s *fixture) { s.wrote("ann", "6") }, version: "6", managers: map[string]time.Duration{"kubectl": 30 * time.Second}},
		"only a status": {
			facts: func(s *fixture) { s.wrote("ann", "6") }, version: "6", managers: map[string]time.Duration{"status": lately}},
		"no managers": {facts: func(s *fixture) { s.wrote("ann", "6") }, version: "6"},
		"no facts":    {version: "6", managers: map[string]time.Duration{"kubectl": lately}},
		"no version":  {facts: func(s *fixture) { s.wrote("ann", "") }, version: "6", managers: map[string]time.Duration{"kubectl": lately}},
		"another uid": {
			facts:   func(s *fixture) { s.wrote("ann", "6", func(f *Fact) { f.UID = "u9" }) },
			version: "6", managers: map[string]time.Duration{"kubectl": lately},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				pass(long)
				if test.early != nil {
					test.early(s)
				}
				pass(lately)
				since := time.Now()
				pass(known - lately)
				if test.facts != nil {
					test.facts(s)
				}
				pass(lately)
				author := s.FindSince(managed(test.version, test.managers), since)
				if author.Username != test.want || (author.Signal == Audit) != (test.want != "") {
					t.Errorf("author = %+v, want %q", author, test.want)
				}
			})
		})
	}
}

// TestFindSinceWaitsForAudit checks that no author is found while audit facts of the same time may still arrive.
func TestFindSinceWaitsForAudit(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		since := time.Now()
		pass(time.Minute)
		s.wrote("ann", "6")
		if author := s.FindSince(managed("7", map[string]time.Duration{"kubectl": 0}), since); author.Known() {
			t.Errorf("author = %+v at once", author)
		}
		s.wrote("bob", "7")
		pass(5 * time.Second)
		if author := s.FindSince(managed("7", map[string]time.Duration{"kubectl": 5 * time.Second}), since); author.Known() {
			t.Errorf("author = %+v, but there were two", author)
		}
	})
}

// TestAuditWait checks that the author of a change is found once the wait is over, whenever the report of it has arrived meanwhile.
func TestAuditWait(t *testing.T) {
	fresh := map[string]time.Duration{"kubectl": 0}
	later := func(s *fixture) {
		pass(maxWait / 2)
		s.Add([]Fact{factOf("bob", Audit, update, configMap("other", "u2", "7").event(update, ""))}, false)
	}
	for name, test := range map[string]struct {
		lag, reported time.Duration
		// meanwhile runs after the change.
		meanwhile func(s *fixture)
		longest   time.Duration
	}{
		"reported at once":                {20 * time.Millisecond, 0, nil, 2 * time.Second},
		"reported late":                   {20 * time.Millisecond, maxWait, nil, clockSkew + maxWait},
		"reported late, others meanwhile": {20 * time.Millisecond, maxWait, later, clockSkew + maxWait},
		"lag of a second":                 {time.Second, time.Second, nil, clockSkew + maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				state := managed("6", fresh)
				if wait := s.AuditWait(state); wait != 0 {
					t.Errorf("wait of %s without an audit", wait)
				}
				s.wake(test.lag, Audit)
				since := time.Now()
				pass(time.Minute)
				state = managed("6", fresh)
				changed, fact := time.Now(), factOf("ann", Audit, update, state)
				time.AfterFunc(test.reported, func() { s.Add([]Fact{fact}, false) })
				if test.meanwhile != nil {
					test.meanwhile(s)
				}
				pass(0)
				for wait := s.AuditWait(state); wait > 0; wait = s.AuditWait(state) {
					pass(wait)
				}
				if author := s.FindSince(state, since); author.Username != "ann" {
					t.Errorf("author = %+v", author)
				}
				if waited := time.Since(changed); waited > test.longest {
					t.Errorf("waited for %s, want at most %s", waited, test.longest)
				}
			})
		})
	}
}

// TestFindSinceWithPendingEvent checks that an event about the change that was not processed does not affect its author.
func TestFindSinceWithPendingEvent(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Audit)
		since := time.Now()
		pass(time.Minute)
		state := managed("6", map[string]time.Duration{"kubectl": 0})
		gone := configMap("gone", "u2", "9").event(deleted, "")
		s.Add([]Fact{factOf("ann", Audit, update, state), factOf("bob", Audit, deleted, gone)}, false)
		s.submit(state)
		s.submit(gone)
		pass(5 * time.Second)
		if author := s.FindSince(state, since); author.Username != "ann" {
			t.Errorf("author = %+v", author)
		}
		if author := s.FindSince(configMap("gone", "u2", "").event(deleted, ""), since); author.Username != "bob" {
			t.Errorf("author = %+v", author)
		}
	})
}

func TestFindDeletionsSince(t *testing.T) {
	for name, test := range map[string]struct {
		uid, factUID string
		before       bool
		want         string
	}{
		"of the object":            {"u2", "u2", false, "ann"},
		"requested before":         {"u2", "u2", true, "ann"},
		"of another":               {"u2", "u3", false, ""},
		"without a uid":            {"", "u3", false, "ann"},
		"of an earlier one":        {"", "u3", true, ""},
		"fact without uid":         {"u2", "", false, "ann"},
		"fact without uid, before": {"u2", "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				pass(time.Hour)
				fact := factOf("ann", Audit, deleted, configMap("gone", test.factUID, "9").event(deleted, ""))
				if test.factUID == "" {
					nameOnly(&fact)
				}
				since := time.Now().Add(-10 * time.Second)
				if test.before {
					since = since.Add(20 * time.Second)
				}
				s.Add([]Fact{fact}, false)
				pass(30 * time.Second)
				author := s.FindSince(configMap("gone", test.uid, "").event(deleted, ""), since)
				if author.Username != test.want {
					t.Errorf("author = %+v, want %q", author, test.want)
				}
			})
		})
	}
}
