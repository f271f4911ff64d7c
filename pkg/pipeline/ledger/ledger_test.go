// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// step is a call of a ledger, or a check.
type step func(*fixture)

func up(name string, v int) step {
	return func(s *fixture) { s.Upsert(version(instance(name), v), ledger.Debounced) }
}

func now(name string, v int) step {
	return func(s *fixture) { s.Upsert(version(instance(name), v), ledger.Immediate) }
}

func again(name string, v int) step {
	return func(s *fixture) { s.Upsert(version(instance(name), v), ledger.Resend) }
}

func crd(name string, v int) step {
	return func(s *fixture) { s.Upsert(version(definition(name), v), ledger.Debounced) }
}

func gone(name string) step { return func(s *fixture) { s.Remove(instance(name)) } }

func tick(length time.Duration) step { return func(s *fixture) { s.clock.Step(length) } }

func batch(want string) step {
	return func(s *fixture) {
		s.Helper()
		if got := s.next(); got != want {
			s.Fatalf("batch %q, want %q", got, want)
		}
	}
}

func none(s *fixture)                { s.Helper(); s.none() }
func delivered(names ...string) step { return func(s *fixture) { s.Helper(); s.delivered(names...) } }
func rejected(names ...string) step  { return func(s *fixture) { s.Helper(); s.rejected(names...) } }
func expedite(s *fixture)            { s.Expedite() }

// restart opens the ledger again, without what was not written.
func restart(s *fixture) { s.Helper(); s.open() }

// flushed writes everything.
func flushed(s *fixture) { s.Helper(); s.must(s.Flush(s.Context())) }

// counts checks the numbers of known, pending and rejected objects.
func counts(known, pending, rejected int) step {
	return func(s *fixture) {
		s.Helper()
		if got := s.Counts(); got.Known != known || got.Pending != pending || got.Rejected != rejected {
			s.Fatalf("%+v, want %d known, %d pending, %d rejected", got, known, pending, rejected)
		}
	}
}

// has delivers objects with version 1.
func has(names ...string) step {
	return func(s *fixture) {
		s.Helper()
		for _, name := range names {
			now(name, 1)(s)
		}
		s.next()
		s.delivered()
	}
}

// rowsOf checks that there are no rows except those of names.
func rowsOf(names ...string) step {
	return func(s *fixture) {
		s.Helper()
		flushed(s)
		if got := s.rows(); !slices.Equal(got, names) {
			s.Fatalf("rows of %q, want %q", got, names)
		}
	}
}

func retain(names ...string) step {
	return func(s *fixture) {
		s.Retain(item.Instance, "apps/v1", "Deployment", func(key item.Key) bool { return slices.Contains(names, key.Name) })
	}
}

// stories returns the steps of TestStories. They run twice: the second time, everything is written and the process restarted after each
// step.
func stories() map[string][]step {
	const second = time.Second
	return map[string][]step{
		"delivered once":             {up("a", 1), tick(10 * second), batch("+a:1"), delivered(), up("a", 1), counts(1, 0, 0), none},
		"last state wins":            {up("a", 1), up("a", 2), up("a", 3), tick(10 * second), batch("+a:3"), delivered(), none},
		"updated":                    {has("a"), up("a", 2), tick(10 * second), batch("+a:2"), delivered(), counts(1, 0, 0), none},
		"and back":                   {has("a"), up("a", 2), up("a", 1), counts(1, 0, 0), none},
		"deleted before it was sent": {up("a", 1), gone("a"), counts(0, 0, 0), none, rowsOf()},
		"gone": {
			has("a"), gone("a"), batch("-a"), counts(1, 1, 0), delivered(), counts(0, 0, 0), none, rowsOf(),
		},
		"gone and never known":    {gone("a"), counts(0, 0, 0), none},
		"gone twice":              {has("a"), gone("a"), gone("a"), batch("-a"), gone("a"), delivered(), none},
		"gone and back":           {has("a"), gone("a"), up("a", 2), tick(10 * second), batch("+a:2"), delivered(), none},
		"gone and back as it was": {has("a"), gone("a"), up("a", 1), counts(1, 0, 0), none},
		"deleted, delivered, and created again": {
			has("a"), gone("a"), batch("-a"), delivered(), up("a", 1), tick(10 * second), batch("+a:1"), delivered(), none,
		},
		"gone, back and gone": {has("a"), gone("a"), up("a", 2), gone("a"), batch("-a"), delivered(), none, rowsOf()},
		"update, then gone":   {has("a"), up("a", 2), gone("a"), batch("-a"), delivered(), none},
		"changed in the batch": {
			now("a", 1), batch("+a:1"), now("a", 2), counts(0, 1, 0), delivered(), batch("+a:2"), delivered(), none,
		},
		"and back in the batch":       {now("a", 1), batch("+a:1"), now("a", 2), now("a", 1), delivered(), counts(1, 0, 0), none},
		"gone in the batch":           {now("a", 1), batch("+a:1"), gone("a"), delivered(), batch("-a"), delivered(), none, rowsOf()},
		"gone in the batch, rejected": {now("a", 1), batch("+a:1"), gone("a"), rejected(), batch("-a"), delivered(), none, rowsOf()},
		"back while a removal is out": {has("a"), gone("a"), batch("-a"), now("a", 1), delivered(), batch("+a:1"), delivered(), none},
		"gone again while that is out": {
			has("a"), gone("a"), batch("-a"), now("a", 1), gone("a"), delivered(), counts(0, 0, 0), none, rowsOf(),
		},
		"a part is settled": {
			now("a", 1), now("b", 1), now("c", 1), batch("+a:1 +b:1 +c:1"), delivered("b"),
			batch("+a:1 +c:1"), rejected("a"), batch("+c:1"), delivered(), counts(2, 0, 1), none,
		},
		"changes of what is settled": {
			now("a", 1), now("b", 1), batch("+a:1 +b:1"), delivered("a"), now("a", 2),
			gone("b"), batch("+b:1"), delivered(), batch("+a:2 -b"), delivered(), none,
		},
		"delivered and changed during a batch": {
			has("a"), gone("a"), now("b", 1), batch("+b:1 -a"), delivered("a"),
			now("a", 2), batch("+b:1"), delivered(), batch("+a:2"), delivered(), none,
		},
		"rejected": {now("a", 1), batch("+a:1"), rejected(), counts(0, 0, 1), now("a", 1), up("a", 1), none},
		"rejected and changed": {
			now("a", 1), batch("+a:1"), rejected(), now("a", 2), batch("+a:2"), delivered(), counts(1, 0, 0), none,
		},
		"again what was rejected": {
			now("a", 1), batch("+a:1"), rejected(), expedite, counts(0, 1, 1), batch("+a:1"), delivered(), counts(1, 0, 0), none,
		},
		"rejected and again": {now("a", 1), batch("+a:1"), rejected(), again("a", 1), batch("+a:1"), delivered(), none},
		"rejected and gone":  {now("a", 1), batch("+a:1"), rejected(), gone("a"), batch("-a"), delivered(), none, rowsOf()},
		"rejected, changed in between": {
			has("a"), now("a", 2), batch("+a:2"), now("a", 3), rejected(), batch("+a:3"), rejected(), now("a", 1), batch("+a:1"), delivered(), none,
		},
		"rejected and back": {
			has("a"), now("a", 2), batch("+a:2"), rejected(), now("a", 1), batch("+a:1"), delivered(), none,
		},
		"rejected, updated and back": {
			now("a", 1), batch("+a:1"), rejected(), now("a", 2), now("a", 1), batch("+a:1"), delivered(), none,
		},
		"again what was rejected, a removal": {
			has("a"), gone("a"), batch("-a"), rejected(), counts(0, 0, 1), gone("a"),
			retain(), none, expedite, batch("-a"), delivered(), none, rowsOf(),
		},
		"removal rejected, and back": {
			has("a"), gone("a"), batch("-a"), rejected(), now("a", 1), batch("+a:1"), delivered(), counts(1, 0, 0), none,
		},
		"removal rejected, back before": {has("a"), gone("a"), batch("-a"), now("a", 1), rejected(), batch("+a:1"), delivered(), none},
		"too much": {
			now("a", 1), now("b", 1), now("c", 1), batch("+a:1 +b:1 +c:1"), maxItems(2), counts(0, 3, 0),
			batch("+a:1 +b:1"), delivered(), batch("+c:1"), delivered(), counts(3, 0, 0), none,
		},
		"too much, in part settled": {
			now("a", 1), now("b", 1), now("c", 1), batch("+a:1 +b:1 +c:1"), delivered("b"),
			maxItems(1), batch("+a:1"), delivered(), batch("+c:1"), delivered(), counts(3, 0, 0), none,
		},
		"too much, and changed": {
			now("a", 1), now("b", 1), batch("+a:1 +b:1"), now("a", 2), gone("b"), maxItems(1),
			batch("+a:2"), delivered(), batch("-b"), delivered(), none, rowsOf("a"),
		},
		"too much, and gone afterwards": {
			now("a", 1), now("b", 1), batch("+a:1 +b:1"), maxItems(1), batch("+a:1"),
			gone("b"), delivered(), batch("-b"), delivered(), none, rowsOf("a"),
		},
		"too many removals": {
			has("a", "b"), gone("a"), gone("b"), batch("-a -b"), maxItems(1), batch("-a"),
			delivered(), now("b", 1), batch("+b:1"), delivered(), none, rowsOf("b"),
		},
		"more than there may be now": {
			now("a", 1), now("b", 1), batch("+a:1 +b:1"), delivered("a"), maxItems(1), batch("+b:1"), delivered(), none,
		},
		"again":              {has("a", "b"), again("a", 1), batch("+a:1"), delivered(), none},
		"again, and changed": {has("a"), again("a", 1), now("a", 2), batch("+a:2"), delivered(), none},
		"again in the batch": {now("a", 1), batch("+a:1"), again("a", 1), delivered(), batch("+a:1"), delivered(), none},
		"kinds apart": {
			crd("x", 1), up("a", 1), tick(10 * second), marks(1, item.CustomResourceDefinition),
			batch("+x:1"), delivered(), batch("+a:1"), delivered(), none,
		},
		"a list": {has("a", "b"), retain("b"), batch("-a"), delivered(), counts(1, 0, 0), none, rowsOf("b")},
	}
}

func TestStories(t *testing.T) {
	for name, steps := range stories() {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			for _, do := range steps {
				do(s)
			}
		})
		if strings.HasPrefix(name, "again") || name == "kinds apart" { // The caller repeats its request after a death.
			continue
		}
		t.Run(name+", with restarts", func(t *testing.T) {
			s := newFixture(t)
			s.debounce = 0 // After a restart, pending changes wait for the debounce again.
			for _, do := range steps {
				do(s)
				flushed(s)
				restart(s)
			}
		})
	}
}
