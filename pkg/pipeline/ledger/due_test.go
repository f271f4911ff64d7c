// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/test/testkit"
)

// marks marks a run and checks its number of changes, progress checks its progress.
func marks(want int, kinds ...item.Kind) step {
	return func(s *fixture) {
		s.Helper()
		if got := s.MarkRun("run", kinds...); got != want {
			s.Fatalf("%d marked changes, want %d", got, want)
		}
	}
}

func progress(total, done, rejected int) step {
	return func(s *fixture) {
		s.Helper()
		if got, want := s.Progress("run"), (ledger.Progress{Total: total, Done: done, Rejected: rejected}); got != want {
			s.Fatalf("progress = %+v, want %+v", got, want)
		}
	}
}

func maxWait(length time.Duration) step { return func(s *fixture) { s.maxWait = length } }
func reconsider(s *fixture)             { s.ApplyConfig() }
func maxItems(number int) step          { return func(s *fixture) { s.maxItems = number } }
func maxBytes(number int) step          { return func(s *fixture) { s.maxBytes = number; s.open() } }
func debounce(length time.Duration) step {
	return func(s *fixture) { s.debounce = length }
}

// TestRunsOfBatchesThatWereTooLarge checks that a run counts the changes of a batch that was split once.
func TestRunsOfBatchesThatWereTooLarge(t *testing.T) {
	s := newFixture(t)
	for _, do := range []step{
		now("a", 1), now("b", 1), batch("+a:1 +b:1"), marks(2), now("b", 2), maxItems(1), batch("+a:1"), progress(2, 0, 0), delivered(),
		progress(2, 1, 0), batch("+b:2"), delivered(), progress(2, 2, 0), none,
	} {
		do(s)
	}
}

// repeat repeats steps.
func repeat(times int, steps ...step) step {
	return func(s *fixture) {
		s.Helper()
		for range times {
			for _, do := range steps {
				do(s)
			}
		}
	}
}

// changing updates an object to a new version.
func changing(name string) step {
	return func(s *fixture) { s.Upsert(version(instance(name), s.clock.Now().String()), ledger.Debounced) }
}

func TestDue(t *testing.T) {
	const second = time.Second
	for name, steps := range map[string][]step{
		"when it comes to rest":         {up("a", 1), tick(9 * second), none, up("a", 2), tick(9 * second), none, tick(second), batch("+a:2")},
		"what is the same is no change": {up("a", 1), tick(9 * second), up("a", 1), tick(second), batch("+a:1")},
		"never at rest": {
			repeat(11, changing("a"), none, tick(9*second)), tick(second), up("a", 1), batch("+a:1"), delivered(), none,
		},
		"a shorter debounce":       {up("a", 1), debounce(second), reconsider, none, tick(second), batch("+a:1")},
		"no debounce any more":     {up("a", 1), up("b", 1), tick(second), debounce(0), reconsider, batch("+a:1 +b:1")},
		"a longer debounce":        {up("a", 1), debounce(time.Minute), reconsider, tick(10 * second), batch("+a:1")},
		"removals after an edit":   {has("a"), maxWait(second), gone("a"), debounce(time.Minute), reconsider, none, tick(second), batch("-a")},
		"without debounce":         {debounce(0), up("a", 1), batch("+a:1")},
		"now":                      {now("a", 1), batch("+a:1")},
		"now after all":            {up("a", 1), none, now("a", 1), batch("+a:1")},
		"now, and updated":         {maxWait(second), now("a", 1), up("a", 2), tick(second), batch("+a:2")},
		"removals":                 {has("a"), up("a", 2), none, gone("a"), batch("-a")},
		"back after a removal":     {has("a"), gone("a"), tick(second), up("a", 2), tick(9 * second), none, tick(second), batch("+a:2")},
		"expedited":                {maxWait(time.Minute), up("a", 1), none, expedite, batch("+a:1")},
		"marked, another kind":     {up("a", 1), marks(0, item.CustomResourceDefinition), none, marks(1, item.Instance), batch("+a:1")},
		"marked":                   {maxWait(time.Minute), up("a", 1), marks(1), batch("+a:1")},
		"full":                     {maxWait(time.Minute), maxItems(2), now("a", 1), none, now("b", 1), batch("+a:1 +b:1")},
		"not full":                 {maxWait(5 * second), maxItems(2), now("a", 1), tick(4 * second), none, tick(second), batch("+a:1")},
		"waits for the first only": {maxWait(5 * second), now("a", 1), tick(4 * second), now("b", 1), tick(second), batch("+a:1 +b:1")},
		"more than full": {
			maxItems(2), now("a", 1), now("b", 1), now("c", 1), batch("+a:1 +b:1"), batch("+a:1 +b:1"), delivered(), batch("+c:1"),
		},
		"bytes": {
			maxBytes(350), now("a", 1), now("b", 1), now("c", 1), batch("+a:1"), delivered(), batch("+b:1"), delivered(), batch("+c:1"),
		},
		"bytes of a split batch": {
			maxBytes(600), now("a", 1), now("b", 1), batch("+a:1 +b:1"), now("b", 2), now("b", 1), maxItems(1), batch("+a:1"), delivered(),
			maxItems(50), now("c", 1), now("d", 1), batch("+b:1 +c:1"),
		},
		"more than the bytes":      {maxBytes(10), now("a", 1), batch("+a:1")},
		"first come, first served": {maxItems(1), now("b", 1), now("a", 1), now("b", 2), batch("+b:2"), delivered(), batch("+a:1")},
		"the kind that waits": {
			now("a", 1), tick(second), crd("x", 1), tick(11 * second), now("b", 1), batch("+a:1 +b:1"), delivered(), batch("+x:1"),
		},
		"a run": {
			now("a", 1), up("b", 1), now("c", 1), marks(3), maxItems(2), batch("+a:1 +b:1"), progress(3, 0, 0), rejected("a"),
			progress(3, 1, 1), delivered("b"), progress(3, 2, 1), batch("+c:1"), delivered(), progress(3, 3, 1),
		},
		"a run of a kind": {
			now("a", 1), crd("x", 1), marks(1, item.CustomResourceDefinition), progress(1, 0, 0),
			batch("+x:1"), delivered(), batch("+a:1"), delivered(), progress(1, 1, 0),
		},
		"marked, and changed": {now("a", 1), marks(1), now("a", 2), batch("+a:2"), now("a", 3), delivered(), progress(1, 1, 0)},
		"marked, and gone":    {now("a", 1), marks(1), gone("a"), progress(1, 1, 0)},
		"marked, and removed": {has("a"), now("a", 2), marks(1), gone("a"), progress(1, 0, 0), batch("-a"), delivered(), progress(1, 1, 0)},
		"marked, and back":    {has("a"), now("a", 2), marks(1), now("a", 1), progress(1, 1, 0)},
		"marked in the batch": {
			now("a", 1), now("b", 1), batch("+a:1 +b:1"), delivered("a"), now("b", 2), marks(1),
			delivered(), progress(1, 0, 0), batch("+b:2"), delivered(), progress(1, 1, 0),
		},
		"marked in the batch only": {now("a", 1), batch("+a:1"), marks(1), now("a", 2), delivered(), progress(1, 1, 0)},
		"all again":                {has("a", "b"), again("a", 1), again("b", 1), marks(2), batch("+a:1 +b:1"), delivered(), progress(2, 2, 0)},
		"nothing to do":            {has("a"), marks(0), progress(0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			for _, do := range steps {
				do(s)
			}
		})
	}
}

func TestOtherRunReplacesTheMarks(t *testing.T) {
	s := newFixture(t)
	now("a", 1)(s)
	s.MarkRun("first")
	now("b", 1)(s)
	marks(2)(s)
	if got := s.Progress("first"); got != (ledger.Progress{}) {
		t.Errorf("progress of the previous run = %+v", got)
	}
	batch("+a:1 +b:1")(s)
	s.delivered()
	progress(2, 2, 0)(s)
}

// TestRunCountsWhatIsSentBeforeItIsMarked checks that changes that are sent between StartRun and MarkRun count for the run, if they are of
// its kinds.
func TestRunCountsWhatIsSentBeforeItIsMarked(t *testing.T) {
	s := newFixture(t)
	now("before", 1)(s)
	s.MarkRun("first")
	s.StartRun("run", item.Instance)
	progress(0, 0, 0)(s)
	batch("+before:1")(s)
	s.delivered()
	progress(1, 1, 0)(s)
	crd("x", 1)(s)
	now("a", 1)(s)
	s.Expedite()
	for range 2 {
		s.next()
		s.rejected()
	}
	progress(2, 2, 1)(s)
	now("b", 1)(s)
	marks(3, item.Instance)(s)
	progress(3, 2, 1)(s)
	batch("+b:1")(s)
	s.delivered()
	progress(3, 3, 1)(s)
	now("after", 1)(s)
	s.next()
	s.delivered()
	progress(3, 3, 1)(s)
	s.MarkRun("next")
	progress(0, 0, 0)(s)
}

// TestRunSendsARefusedObjectOnce checks that MarkRun sends what was rejected before StartRun, and nothing that was rejected since.
func TestRunSendsARefusedObjectOnce(t *testing.T) {
	s := newFixture(t)
	now("early", 1)(s)
	batch("+early:1")(s)
	s.rejected()
	s.StartRun("run")
	now("a", 1)(s)
	batch("+a:1")(s)
	s.rejected()
	progress(1, 1, 1)(s)
	marks(2)(s)
	batch("+early:1")(s)
	s.rejected()
	progress(2, 2, 2)(s)
	// The next run sends both.
	s.StartRun("next")
	if got := s.MarkRun("next"); got != 2 {
		t.Errorf("%d marked changes of the next run, want 2", got)
	}
}

func TestRetain(t *testing.T) {
	s := newFixture(t)
	crd("x", 1)(s)
	crd("y", 1)(s)
	pod := instance("p")
	pod.APIVersion, pod.ObjectKind = "v1", "Pod"
	s.Upsert(version(pod, 1), ledger.Immediate)
	has("a")(s)
	s.Expedite()
	s.next()
	s.delivered()
	s.Retain(item.CustomResourceDefinition, "", "", func(key item.Key) bool { return key.Name == "x" })
	batch("-y")(s)
	s.delivered()
	s.RetainTypes(func(_ item.Kind, apiVersion, _ string) bool { return apiVersion == "v1" })
	got := s.next()
	s.delivered()
	if got += " " + s.next(); got != "-a -x" && got != "-x -a" {
		t.Errorf("removed objects = %s", got)
	}
	s.delivered()
	counts(1, 0, 0)(s)
}

// TestLateResults checks that results of an earlier batch are ignored.
func TestLateResults(t *testing.T) {
	s := newFixture(t)
	has("a")(s)
	late := s.handed.ID
	gone("a")(s)
	batch("-a")(s)
	s.must(s.Delivered(t.Context(), late, s.keysOf()))
	s.must(s.Rejected(t.Context(), s.handed.ID, []item.Key{instance("b")}))
	batch("-a")(s)
}

func TestNextEndsWithItsContext(t *testing.T) {
	s := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next returned %v", err)
	}
	up("a", 1)(s)
	if got := s.Counts(); !got.OldestDue.IsZero() {
		t.Errorf("batch %+v before anything is due", got)
	}
	s.clock.Step(time.Minute)
	if got := s.Counts().OldestDue; !got.Equal(testkit.Noon.Add(10 * time.Second)) {
		t.Errorf("due = %s", got)
	}
}

// TestLedgersAreApart opens a ledger beside another one whose rows follow.
func TestLedgersAreApart(t *testing.T) {
	s := newFixture(t)
	has("a")(s)
	other, err := ledger.Open(t.Context(), ledger.Config{Table: s.table(), Prefix: strings.TrimSuffix(prefix, "/") + "es/", Clock: s.clock})
	s.must(err)
	if got := other.Counts(); got.Known != 0 {
		t.Errorf("%+v", got)
	}
}
