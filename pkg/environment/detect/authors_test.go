// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// changedBy waits until the records of an environment name these authors, each with a number of objects.
func (s *fixture) changedBy(environment string) []string {
	s.Helper()
	var lines []string
	for _, record := range s.syncStatuses() {
		if record.Spec.Subject.Name != environment {
			continue
		}
		var names []string
		for _, author := range record.Status.ChangedBy {
			names = append(names, fmt.Sprintf("%s%s %d", author.Username, author.FieldManager, author.Workloads))
		}
		lines = append(lines, strings.Join(names, ", "))
	}
	return lines
}

func (s *fixture) namesAuthors(environment string, want ...string) {
	s.Helper()
	s.eventually("authors", func() error {
		if got := s.changedBy(environment); !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

func TestAuthors(t *testing.T) {
	s := begunFixture(t)
	s.rests()
	s.put("settings", "2", by("ann"))
	s.put("queue", "2", by("ann"))
	s.put("queue", "3", by("ben"))
	s.put("secret-other", "2", by("cleo"))
	s.arrived(3)
	s.namesAuthors("alice", "ann 2, ben 1")
	s.namesAuthors("bob", "ann 1")
	s.put("secret-database", "2", by("dan"))
	s.put("settings", "2", by("eric")) // A user whose change does not count is not an author.
	s.namesAuthors("alice", "ann 2, ben 1, dan 1")
	s.namesAuthors("bob", "ann 1")
}

// TestAuthorsOfUnwatchedChanges makes changes while no process runs.
func TestAuthorsOfUnwatchedChanges(t *testing.T) {
	s := begunFixture(t)
	s.stop()
	s.authors.found = map[string]string{"queue": "ann", "secret-database": "ben", "service-web": "cleo"}
	s.put("queue", "2")
	s.remove("secret-database")
	s.put("settings", "2")
	s.start(0)
	s.stays("alice Pending* Changed ConfigMap queue Changed ConfigMap settings Removed Secret secret-database",
		"bob Pending* Changed ConfigMap settings")
	s.namesAuthors("alice", "ann 1, ben 1")
	s.namesAuthors("bob", "")
}

// recordsNothing fails if something is recorded while the window of a batch passes, and some time after it.
func (s *fixture) recordsNothing() {
	s.Helper()
	for range 40 {
		s.clock.Step(time.Second)
		if got := s.recordLines(); len(got) > 0 {
			s.Fatalf("recorded before the author is known: %q", got)
		}
	}
}

// TestWaitsForAuthors has an author who is unknown at the end of the window, and then one who is never known.
func TestWaitsForAuthors(t *testing.T) {
	s := begunFixture(t)
	s.rests()
	s.authors.thinks.Store(true)
	s.put("queue", "2")
	s.arrived(1)
	s.recordsNothing()
	s.expectRecords("alice Pending* Changed ConfigMap queue")
}

// TestComparisonsWaitForAuthors has a change that no event reports, whose author is known only after the end of the window
// and after a restart during the wait, and then one whose author is never known.
func TestComparisonsWaitForAuthors(t *testing.T) {
	s := begunFixture(t)
	s.stop()
	s.authors.found = map[string]string{"queue": "ann", "settings": "ben"}
	s.authors.late.Store(true)
	s.put("queue", "2")
	s.start(0)
	s.recordsNothing()
	s.stop()
	s.start(0)
	s.authors.late.Store(false)
	s.namesAuthors("alice", "ann 1")
	s.stop()
	s.authors.late.Store(true)
	s.put("settings", "2")
	s.start(0)
	s.expectRecords("alice Pending* Changed ConfigMap queue Changed ConfigMap settings", "bob Pending* Changed ConfigMap settings")
	s.namesAuthors("alice", "ann 1")
}

// arrived waits for a number of changes since the start, and until their batch has rows. The clock does not advance meanwhile, so they are
// in one window.
func (s *fixture) arrived(changes int64) {
	s.Helper()
	s.waits("changes are received", func() error {
		if asked, rows := s.authors.asked.Load(), s.rows(); asked < changes || rows == 0 {
			return fmt.Errorf("%d with %d rows, want %d", asked, rows, changes)
		}
		return nil
	})
}

// TestContentIsNotKept checks that events that wait for authors, and stored changes, have no content of objects.
func TestContentIsNotKept(t *testing.T) {
	s := begunFixture(t)
	s.put("secret-database", "hunter2", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"})
		o.SetLabels(map[string]string{"password": "hunter2"})
	})
	s.put("secret-other", "hunter2")
	s.expectRecords("alice Pending* Changed Secret secret-database")
	s.authors.mu.Lock()
	defer s.authors.mu.Unlock()
	if len(s.authors.kept) < 2 {
		t.Errorf("only %d events", len(s.authors.kept))
	}
	for _, object := range s.authors.kept {
		if text := fmt.Sprint(object.Object); strings.Contains(text, "hunter2") {
			t.Errorf("event has content: %s", text)
		}
	}
	for _, list := range []any{s.syncStatuses(), s.dependencies("alice"), s.environment("alice")} {
		if text := fmt.Sprint(list); strings.Contains(text, "hunter2") {
			t.Errorf("content is stored: %s", text)
		}
	}
}
