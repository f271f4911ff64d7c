// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// prompts returns the Events about what users can request.
func (s *fixture) prompts() (out []string) {
	for _, line := range s.events.Lines() {
		if strings.Contains(line, "Offered") || strings.Contains(line, "DependenciesChanged") {
			out = append(out, line)
		}
	}
	return out
}

// TestPromptsArePublishedOnce checks that each prompt has one Event, however often its environment is reconciled, and by however many
// processes.
func TestPromptsArePublishedOnce(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	shown := func(revision int64, record string) {
		t.Helper()
		s.reaches("the prompts", func(e *v1alpha1.Environment) bool {
			return e.Status.LatestRevision == revision && e.Status.ChangedWorkloadCount == 1 && e.Status.LatestDependencySync == record
		})
	}
	s.offer(2, image(web, "2"), worker)
	changed := s.prompt("batch").Name
	shown(2, changed)
	s.pass(10)
	s.stop()
	s.start(0)
	s.pass(10)
	shown(2, changed)
	s.offer(3, image(web, "3"), worker)
	shown(3, changed)
	s.stop()
	s.start(0)
	s.pass(10)
	shown(3, changed)
	got := s.prompts()
	slices.Sort(got)
	want := []string{
		"alice Normal DependenciesChanged: SyncStatus " + changed + ": 1 ConfigMap changed in the source",
		"alice Normal Offered: The catalog offers revision 2 (SyncStatus shop-r2), and the environment holds revision 1",
		"alice Normal Offered: The catalog offers revision 3 (SyncStatus shop-r3), and the environment holds revision 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAutomaticSyncsPromptForNothing checks that a revision that is applied automatically is no prompt.
func TestAutomaticSyncsPromptForNothing(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	if got := s.prompts(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
